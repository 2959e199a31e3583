//! A mirror: where ready images are.

use std::env;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::index::{INDEX, MAX_INDEX, find};
use super::{ArchiveLocation, ArchiveOffer, read_small};
#[cfg(feature = "download")]
use super::{download::Request, registry::Repository};

/// The environment variable that names the mirror to use.
const VARIABLE: &str = "CELLBLOCK_IMAGE_MIRROR";
/// Extension of an archive's file name.
const ARCHIVE: &str = ".tar.zst";

/// Location of ready images: a folder with `images.json`, the same behind HTTP, a repository of an OCI
/// registry, or one archive.
///
/// Read from a path, `file://…`, `https://…`, `http://…` or `oci://HOST/REPOSITORY[:TAG]`.
/// [`Display`](fmt::Display) leaves a password out.
#[derive(Clone, PartialEq, Eq)]
pub struct Mirror(AddressKind);

#[derive(Clone, PartialEq, Eq)]
enum AddressKind {
    Local(PathBuf),
    #[cfg(feature = "download")]
    Web(reqwest::Url),
    #[cfg(feature = "download")]
    Registry(Repository),
}

impl Mirror {
    /// Returns the mirror that `CELLBLOCK_IMAGE_MIRROR` names, if it is set.
    pub fn from_env() -> Result<Option<Self>, String> {
        let Some(named) = env::var_os(VARIABLE).filter(|it| !it.is_empty()) else {
            return Ok(None);
        };
        let named = named.to_string_lossy();
        let mirror = named
            .parse()
            .map_err(|problem| format!("{VARIABLE}: {problem}"))?;
        Ok(Some(mirror))
    }

    /// Looks for an image of this machine.
    pub(crate) fn find(&self, name: &str) -> Result<ArchiveOffer, String> {
        match &self.0 {
            AddressKind::Local(path) if is_archive(&path.to_string_lossy()) => Ok(ArchiveOffer {
                origin: path.display().to_string(),
                id: None,
                sha256: None,
                bytes: path.metadata().ok().map(|it| it.len()),
                place: ArchiveLocation::File(path.clone()),
            }),
            AddressKind::Local(folder) => {
                let index = folder.join(INDEX);
                let file = File::open(&index)
                    .map_err(|error| format!("`{}` cannot be opened: {error}", index.display()))?;
                let entry = find(&read_small(file, MAX_INDEX, INDEX)?, name)?;
                let path = folder.join(&entry.file);
                Ok(ArchiveOffer {
                    origin: path.display().to_string(),
                    id: Some(entry.id),
                    sha256: Some(entry.sha256),
                    bytes: Some(entry.bytes),
                    place: ArchiveLocation::File(path),
                })
            }
            #[cfg(feature = "download")]
            AddressKind::Web(url) if is_archive(url.path()) => Ok(ArchiveOffer {
                origin: shown(url),
                id: None,
                sha256: None,
                bytes: None,
                place: ArchiveLocation::Web(Request::new(url.clone())?),
            }),
            #[cfg(feature = "download")]
            AddressKind::Web(url) => {
                let join = |file: &str| url.join(file).map_err(|error| error.to_string());
                let request = Request::new(join(INDEX)?)?;
                let entry = find(&read_small(request.get()?, MAX_INDEX, INDEX)?, name)?;
                let archive = join(&entry.file)?;
                Ok(ArchiveOffer {
                    origin: shown(&archive),
                    id: Some(entry.id),
                    sha256: Some(entry.sha256),
                    bytes: Some(entry.bytes),
                    place: ArchiveLocation::Web(request.at(archive)),
                })
            }
            #[cfg(feature = "download")]
            AddressKind::Registry(repository) => repository.find(name),
        }
    }
}

impl FromStr for Mirror {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((scheme, rest)) = text.split_once("://") else {
            let path =
                std::path::absolute(text).map_err(|error| format!("`{text}` is not a path: {error}"))?;
            return Ok(Self(AddressKind::Local(path)));
        };
        match scheme {
            "file" if Path::new(rest).is_absolute() => Ok(Self(AddressKind::Local(rest.into()))),
            "file" => Err(format!("`{text}` must be `file:///` and an absolute path")),
            #[cfg(feature = "download")]
            "http" | "https" => {
                let mut url =
                    reqwest::Url::parse(text).map_err(|error| format!("it is not a URL: {error}"))?;
                // Names are joined to it.
                if !is_archive(url.path()) && !url.path().ends_with('/') {
                    let folder = format!("{}/", url.path());
                    url.set_path(&folder);
                }
                Ok(Self(AddressKind::Web(url)))
            }
            #[cfg(feature = "download")]
            "oci" => Ok(Self(AddressKind::Registry(rest.parse()?))),
            _ => Err(format!(
                "a mirror is a folder, or a URL with {}, not `{}://`",
                if cfg!(feature = "download") {
                    "file, http, https or oci"
                } else {
                    "file (this program was built without the feature `download`)"
                },
                scheme.escape_debug()
            )),
        }
    }
}

impl fmt::Display for Mirror {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            AddressKind::Local(path) => path.display().fmt(f),
            #[cfg(feature = "download")]
            AddressKind::Web(url) => f.write_str(&shown(url)),
            #[cfg(feature = "download")]
            AddressKind::Registry(repository) => repository.fmt(f),
        }
    }
}

/// As [`Display`](fmt::Display): an address may contain a password.
impl fmt::Debug for Mirror {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn is_archive(path: &str) -> bool {
    path.ends_with(ARCHIVE)
}

/// Returns an address without the user, the password and the query, which may be secret.
#[cfg(feature = "download")]
pub(super) fn shown(url: &reqwest::Url) -> String {
    let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
    format!(
        "{}://{}{port}{}",
        url.scheme(),
        url.host_str().unwrap_or_default(),
        url.path()
    )
}
