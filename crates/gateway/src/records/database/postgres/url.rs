//! The address of a Postgres database, and how connections to it are protected.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::records::database::url::{FORM, InvalidPostgresUrl, RootsError};

/// Port of Postgres.
const PORT: u16 = 5432;
/// Maximum time for a connection to one host.
const CONNECT: Duration = Duration::from_secs(5);
/// Maximum time for which bytes may stay unacknowledged before a connection counts as lost.
const LOST: Duration = Duration::from_secs(15);
/// Limits that the server enforces, in milliseconds: of a statement, of a wait for another's lock,
/// and of a pause in a transaction.
const LIMITS: &str =
    "-c statement_timeout=25000 -c lock_timeout=20000 -c idle_in_transaction_session_timeout=60000";

/// URL of a Postgres database, with how its server is verified. It is displayed without user and password.
#[derive(Clone)]
pub struct PostgresUrl {
    pub(super) config: Config,
    encryption: Encryption,
}

/// Protection of connections.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Encryption {
    None,
    /// TLS; the certificate and the name in it are verified, with the roots of this file instead of
    /// the machine's.
    Verified(Option<PathBuf>),
}

impl PostgresUrl {
    /// Reads a URL. A relative path of certificates counts from the folder.
    pub fn new(text: &str, folder: &Path) -> Result<Self, InvalidPostgresUrl> {
        let text = text.trim();
        InvalidPostgresUrl::unless_named(text)?;
        // A password may have a `?`.
        let host = text.find('@').unwrap_or(0);
        let (address, settings) = match text[host..].find('?') {
            Some(at) => (&text[..host + at], &text[host + at + 1..]),
            None => (text, ""),
        };
        let mut mode = None;
        let mut roots = None;
        let mut others = Vec::new();
        for setting in settings.split('&').filter(|setting| !setting.is_empty()) {
            match setting.split_once('=') {
                Some(("sslmode", value)) => mode = Some(value),
                Some(("sslrootcert", value)) => {
                    let path = percent_encoding::percent_decode_str(value).decode_utf8();
                    let path = path.map_err(|_| FORM)?;
                    roots = Some(folder.join(path.as_ref()));
                }
                _ => others.push(setting),
            }
        }
        // Its errors may repeat a part of the password.
        let config = Config::from_str(&format!("{address}?{}", others.join("&")));
        let mut config = config.map_err(|_| {
            InvalidPostgresUrl::new(
                "must be a URL such as `postgres://user:password@host/database`, with special characters \
                 percent-encoded, and after `?` only `sslmode`, `sslrootcert` and settings of libpq",
            )
        })?;
        if config.get_hosts().is_empty() {
            return Err(InvalidPostgresUrl::new(
                "must name a host, as in `postgres://user:password@host/database`",
            ));
        }
        if config.get_dbname().is_none_or(str::is_empty) {
            return Err(InvalidPostgresUrl::new(
                "must name a database, as in `postgres://user:password@host/database`",
            ));
        }
        let local = config.get_hosts().iter().all(is_local);
        let encryption = match mode {
            Some("disable") => Encryption::None,
            None if local && roots.is_none() => Encryption::None,
            None | Some("require" | "verify-ca" | "verify-full") => Encryption::Verified(roots),
            Some("allow" | "prefer") => {
                return Err(InvalidPostgresUrl::new(
                    "has an `sslmode` that could send everything unencrypted; write `verify-full`, or \
                     `disable` if the network is trusted",
                ));
            }
            Some(_) => {
                return Err(InvalidPostgresUrl::new(
                    "has an unknown `sslmode`; write `verify-full`, or `disable` if the network is trusted",
                ));
            }
        };
        config.ssl_mode(match encryption {
            Encryption::None => SslMode::Disable,
            Encryption::Verified(_) => SslMode::Require,
        });
        let options = config.get_options().map(|own| format!("{LIMITS} {own}"));
        config
            .options(options.unwrap_or_else(|| LIMITS.to_owned()))
            .tcp_user_timeout(LOST);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        if config.get_application_name().is_none() {
            config.application_name("cellblock");
        }
        Ok(Self { config, encryption })
    }

    /// Whether the URL contains a password.
    pub fn has_password(&self) -> bool {
        self.config.get_password().is_some()
    }

    /// Returns how connections are encrypted, if they are: the server's certificate and the name in
    /// it are verified.
    pub(super) fn tls(&self) -> Result<Option<ClientConfig>, RootsError> {
        let Encryption::Verified(file) = &self.encryption else {
            return Ok(None);
        };
        let certificates = match file {
            Some(path) => CertificateDer::pem_file_iter(path)
                .and_then(Iterator::collect)
                .map_err(|source| RootsError::Read {
                    path: path.clone(),
                    source,
                })?,
            None => rustls_native_certs::load_native_certs().certs,
        };
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(certificates);
        if store.is_empty() {
            return Err(RootsError::Missing);
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(store)
            .with_no_client_auth();
        Ok(Some(config))
    }
}

/// Whether bytes for a host stay on this machine.
fn is_local(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        }
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://")?;
        let ports = self.config.get_ports();
        for (place, host) in self.config.get_hosts().iter().enumerate() {
            if place > 0 {
                f.write_str(",")?;
            }
            match host {
                Host::Tcp(name) if name.contains(':') => write!(f, "[{name}]")?,
                Host::Tcp(name) => f.write_str(name)?,
                Host::Unix(path) => write!(f, "{}", path.display())?,
            }
            let port = ports.get(place).or(ports.first()).copied().unwrap_or(PORT);
            write!(f, ":{port}")?;
        }
        write!(f, "/{}", self.config.get_dbname().unwrap_or_default())
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Result<PostgresUrl, InvalidPostgresUrl> {
        PostgresUrl::new(text, Path::new("/etc/cellblock"))
    }

    fn problem(text: &str) -> String {
        url(text).unwrap_err().to_string()
    }

    #[test]
    fn other_machines_are_verified_unless_the_url_says_otherwise() {
        for (text, encryption) in [
            ("postgres://u@db.example/x", Encryption::Verified(None)),
            (
                "postgres://u@db.example/x?sslmode=require",
                Encryption::Verified(None),
            ),
            ("postgres://u@db.example/x?sslmode=disable", Encryption::None),
            (
                "postgres://u@db.example/x?sslrootcert=certs%2Fca.pem",
                Encryption::Verified(Some(PathBuf::from("/etc/cellblock/certs/ca.pem"))),
            ),
            ("postgresql://u@127.0.0.1:5433/x", Encryption::None),
            ("postgres://u@localhost/x", Encryption::None),
            (
                "postgres://u@localhost/x?sslmode=verify-full",
                Encryption::Verified(None),
            ),
            ("postgres:///x?user=u&host=/run/postgresql", Encryption::None),
            // One of the two is elsewhere.
            ("postgres://u@localhost,db.example/x", Encryption::Verified(None)),
        ] {
            assert_eq!(url(text).unwrap().encryption, encryption, "{text}");
        }
        for mode in ["prefer", "allow"] {
            let text = problem(&format!("postgres://u@db.example/x?sslmode={mode}"));
            assert!(text.contains("could send everything unencrypted"), "{text}");
        }
    }

    #[test]
    fn neither_errors_nor_the_displayed_url_contain_the_password() {
        let shown = url("postgres://ann:s3cret%2F@db.example:6000/x?application_name=a").unwrap();
        assert_eq!(shown.to_string(), "postgres://db.example:6000/x");
        assert_eq!(format!("{shown:?}"), "postgres://db.example:6000/x");
        assert!(shown.has_password());
        let odd = url("postgres://ann:s3cr?et@db.example/x?sslmode=disable").unwrap();
        assert_eq!(odd.to_string(), "postgres://db.example:5432/x");
        assert_eq!(odd.encryption, Encryption::None);
        for text in [
            "postgres://ann:s3cret@db.example/x?s3cret=1",
            "mysql://ann:s3cret@db.example/x",
            "postgres://ann:s3cret@db.example",
            "postgres://ann:s3cret@/x",
            "postgres://ann:s3cret@db.example/x?sslmode=s3cret",
        ] {
            let problem = problem(text);
            assert!(!problem.contains("s3c") && !problem.contains("et@"), "{problem}");
        }
    }
}
