//! Mirrors of ready images: a folder, a static HTTP server or an OCI registry.

mod address;
#[cfg(feature = "download")]
mod download;
mod index;
#[cfg(feature = "download")]
mod registry;

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use crate::error::IoResultExt as _;
use crate::home::Home;
use crate::{Result, Sink};

pub use address::Mirror;
pub use index::{MirrorEntry, add_to_mirror};

/// Location of an archive's bytes.
#[derive(Debug)]
enum ArchiveLocation {
    File(PathBuf),
    #[cfg(feature = "download")]
    Web(download::Request),
}

/// An archive that a mirror has, and what the mirror says of it.
#[derive(Debug)]
pub(crate) struct ArchiveOffer {
    /// Name in errors and messages.
    pub(crate) origin: String,
    pub(crate) id: Option<String>,
    pub(crate) sha256: Option<String>,
    pub(crate) bytes: Option<u64>,
    place: ArchiveLocation,
}

/// Ends what an [`ArchiveOffer`] was opened for: keeps or removes what has arrived of it.
#[derive(Debug, Default)]
pub(crate) struct Arrival {
    #[cfg(feature = "download")]
    kept: Option<download::PartGuard>,
}

impl ArchiveOffer {
    /// Opens the archive to be read once. `sha256` is the hash that it must have, if one is known.
    #[cfg_attr(
        not(feature = "download"),
        expect(unused_variables, reason = "only a download needs them")
    )]
    pub(crate) fn open(
        &self,
        home: &Home,
        sha256: Option<&str>,
        sink: &Sink,
    ) -> Result<(Box<dyn Read>, Arrival)> {
        match &self.place {
            ArchiveLocation::File(path) => {
                let file = File::open(path).at("open", path)?;
                Ok((Box::new(file), Arrival::default()))
            }
            #[cfg(feature = "download")]
            ArchiveLocation::Web(request) => {
                let (download, kept) = download::start(home, request, &self.origin, sha256, sink)?;
                Ok((Box::new(download), Arrival { kept: Some(kept) }))
            }
        }
    }
}

impl Arrival {
    /// Returns the result of the import that read the archive.
    pub(crate) fn end<T>(self, result: Result<T>) -> Result<T> {
        #[cfg(feature = "download")]
        if let Some(kept) = self.kept {
            return kept.end(result);
        }
        result
    }
}

/// Reads at most `limit` bytes of a small answer.
fn read_small(from: impl Read, limit: u64, what: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    from.take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("{what} cannot be read: {error}"))?;
    if bytes.len() as u64 > limit {
        return Err(format!("{what} has more than {limit} bytes"));
    }
    Ok(bytes)
}
