//! The database that a URL names.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use cellblock_settings::MissingFeature;
use percent_encoding::percent_decode_str;
use url::Url;

use super::options::SqlOptions;
use crate::address::is_public;

/// Kind of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Sqlite,
    Postgres,
    Mysql,
}

/// A database.
#[derive(Clone, Debug)]
pub(super) enum Target {
    Sqlite(PathBuf),
    Postgres(ServerTarget),
    Mysql(ServerTarget),
}

/// A database of a server.
#[derive(Clone)]
#[cfg_attr(
    not(any(feature = "mysql", feature = "postgres")),
    expect(dead_code, reason = "nothing connects to it")
)]
pub(super) struct ServerTarget {
    pub(super) place: ServerAddress,
    pub(super) user: String,
    pub(super) password: Option<String>,
    pub(super) database: Option<String>,
}

/// Address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ServerAddress {
    /// The path of its Unix socket.
    Socket(PathBuf),
    Host {
        host: String,
        port: u16,
        encryption: Encryption,
        allow_private: bool,
    },
}

impl fmt::Display for Target {
    /// Formats the address for operators.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "`{}`", path.display()),
            Self::Postgres(server) | Self::Mysql(server) => match &server.place {
                ServerAddress::Socket(path) => write!(f, "`{}`", path.display()),
                ServerAddress::Host { host, port, .. } => write!(f, "`{host}:{port}`"),
            },
        }
    }
}

/// Protection of a connection to a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Encryption {
    None,
    /// TLS; the certificate and the name in it are verified, with the roots of this file instead of
    /// the machine's.
    Verified(Option<PathBuf>),
}

impl fmt::Debug for ServerTarget {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTarget")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

const FORMS: &str =
    "must be a URL such as `postgres://user:password@host/database`, `mysql://…` or `sqlite:data/x.db`";

impl Target {
    /// Reads a URL. The error continues a sentence that starts with the key, and does not repeat the URL.
    pub(super) fn new(text: &str, options: &SqlOptions, folder: &Path) -> Result<Self, String> {
        let text = text.trim();
        if let Some(path) = text.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() || path.contains('?') || path.starts_with(':') {
                return Err("must have the path of a file after `sqlite:`, without `?`".to_owned());
            }
            return Ok(Self::Sqlite(folder.join(path)));
        }
        let url = Url::parse(text).map_err(|_| FORMS.to_owned())?;
        let target = match url.scheme() {
            "postgres" | "postgresql" => ServerTarget::new(&url, options, folder, 5432).map(Self::Postgres),
            "mysql" | "mariadb" => ServerTarget::new(&url, options, folder, 3306).map(Self::Mysql),
            _ => Err(FORMS.to_owned()),
        };
        target?.built()
    }

    /// Fails if this build has nothing that reads such a database.
    fn built(self) -> Result<Self, String> {
        match self {
            Self::Postgres(_) if !cfg!(feature = "postgres") => Err(MissingFeature("postgres").to_string()),
            Self::Mysql(_) if !cfg!(feature = "mysql") => Err(MissingFeature("mysql").to_string()),
            built => Ok(built),
        }
    }

    pub(super) const fn dialect(&self) -> Dialect {
        match self {
            Self::Sqlite(_) => Dialect::Sqlite,
            Self::Postgres(_) => Dialect::Postgres,
            Self::Mysql(_) => Dialect::Mysql,
        }
    }

    /// Returns the password of its user.
    pub(super) fn password(&self) -> Option<&str> {
        match self {
            Self::Sqlite(_) => None,
            Self::Postgres(server) | Self::Mysql(server) => server.password.as_deref(),
        }
    }
}

/// Settings after the `?` of a URL.
#[derive(Default)]
struct Settings {
    mode: Option<String>,
    roots: Option<PathBuf>,
    socket: Option<PathBuf>,
}

impl Settings {
    fn new(url: &Url) -> Result<Self, String> {
        let mut settings = Self::default();
        for (key, value) in url.query_pairs() {
            match key.as_ref() {
                "sslmode" | "ssl-mode" => {
                    settings.mode = Some(value.to_ascii_lowercase().replace('_', "-"));
                }
                "sslrootcert" | "ssl-ca" => settings.roots = Some(PathBuf::from(value.as_ref())),
                "host" | "socket" if value.starts_with('/') => {
                    settings.socket = Some(PathBuf::from(value.as_ref()));
                }
                _ => {
                    return Err(
                        "has an unknown setting after `?`; possible are `sslmode`, `sslrootcert` and \
                         `host`, the absolute path of a Unix socket"
                            .to_owned(),
                    );
                }
            }
        }
        Ok(settings)
    }
}

impl ServerTarget {
    fn new(url: &Url, options: &SqlOptions, folder: &Path, port: u16) -> Result<Self, String> {
        let settings = Settings::new(url)?;
        let decoded = |text: &str| {
            let text = percent_decode_str(text).decode_utf8();
            text.map(std::borrow::Cow::into_owned)
                .map_err(|_| "must be UTF-8 where it is percent-encoded".to_owned())
        };
        let user = decoded(url.username())?;
        if user.is_empty() {
            return Err("must name a user, as in `postgres://user@host/database`".to_owned());
        }
        let password = url.password().map(decoded).transpose()?;
        let database = decoded(url.path().trim_start_matches('/'))?;
        let host = decoded(url.host_str().unwrap_or_default())?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = url.port().unwrap_or(port);
        let socket = match &settings.socket {
            Some(_) if host != "localhost" => {
                return Err("must have the host `localhost` before the path of a Unix socket".to_owned());
            }
            Some(path) => Some(path.clone()),
            None => host.starts_with('/').then(|| PathBuf::from(host)),
        };
        let place = match socket {
            // Postgres names the folder.
            Some(path) if url.scheme().starts_with("postgres") => {
                ServerAddress::Socket(path.join(format!(".s.PGSQL.{port}")))
            }
            Some(path) => ServerAddress::Socket(path),
            None if host.is_empty() => return Err(FORMS.to_owned()),
            None => ServerAddress::Host {
                host: host.to_owned(),
                port,
                encryption: encryption(host, &settings, options, folder)?,
                allow_private: options.allow_private,
            },
        };
        Ok(Self {
            place,
            user,
            password: password.filter(|password| !password.is_empty()),
            database: (!database.is_empty()).then_some(database),
        })
    }
}

/// Returns the protection that a URL demands, or the usual one. There is none that falls back to plain text.
fn encryption(
    host: &str,
    settings: &Settings,
    options: &SqlOptions,
    folder: &Path,
) -> Result<Encryption, String> {
    let address = host.parse::<IpAddr>().ok();
    if address.is_some_and(|address| !is_public(address)) && !options.allow_private {
        return Err("names a private address; if that is intended, set `allow_private: true`".to_owned());
    }
    let local = host == "localhost" || address.is_some_and(|address| address.is_loopback());
    let roots = settings.roots.as_ref().map(|path| folder.join(path));
    match settings.mode.as_deref() {
        None if local && roots.is_none() => Ok(Encryption::None),
        None | Some("require" | "required" | "verify-ca" | "verify-full" | "verify-identity") => {
            Ok(Encryption::Verified(roots))
        }
        Some("disable" | "disabled") if local || options.allow_unencrypted => Ok(Encryption::None),
        Some("disable" | "disabled") => Err(
            "`sslmode=disable` sends everything unencrypted to another machine; remove it, or permit it with \
             `allow_unencrypted: true`"
                .to_owned(),
        ),
        Some("allow" | "prefer" | "preferred") => Err(
            "`sslmode=prefer` could send everything unencrypted; write `verify-full`, or `disable` and \
             `allow_unencrypted: true`"
                .to_owned(),
        ),
        Some(_) => Err("has an unknown `sslmode`; write `verify-full` or `disable`".to_owned()),
    }
}
