//! Errors of an artifact store.

use std::error::Error;
use std::io;

use crate::ArtifactId;

/// Returns whether a full disk is the cause of an error.
pub fn is_disk_full(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>()
            && matches!(
                error.kind(),
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
            )
        {
            return true;
        }
        cause = error.source();
    }
    false
}

/// An operation of a store that failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArtifactError {
    /// No artifact with this id is stored.
    #[error("artifact {id} is not in the store; it was removed, or never published here")]
    NotFound {
        /// Id of the artifact.
        id: ArtifactId,
    },
    /// The stored bytes do not match the id.
    #[error(
        "artifact {id} is damaged: its bytes hash to {actual}; restore it from another store, or remove \
         it and publish it again"
    )]
    Damaged {
        /// Id of the artifact.
        id: ArtifactId,
        /// The sha256 of the stored bytes.
        actual: ArtifactId,
    },
    /// The metadata or an origin of the artifact cannot be read.
    #[error("could not read the metadata of artifact {id}; remove it and publish it again")]
    Metadata {
        /// Id of the artifact.
        id: ArtifactId,
        /// The parse error.
        #[source]
        source: serde_json::Error,
    },
    /// The metadata or an origin cannot be written as JSON.
    #[error("could not encode an artifact's metadata")]
    Encode(#[source] serde_json::Error),
    /// The range is not within the artifact.
    #[error("bytes {start} to {end} are not within the {bytes} bytes of artifact {id}")]
    Range {
        /// Id of the artifact.
        id: ArtifactId,
        /// First byte.
        start: u64,
        /// End of the range, exclusive.
        end: u64,
        /// Size of the artifact in bytes.
        bytes: u64,
    },
    /// The name is not a valid owner of references.
    #[error(
        "{owner:?} cannot own references: expected at most {limit} ASCII letters, digits, `-`, `_` and \
         `.`, the first a letter or digit"
    )]
    Owner {
        /// The given name, cut.
        owner: String,
        /// Maximum number of characters.
        limit: usize,
    },
    /// The file changed between the two times that it was read.
    #[error("file changed while it was being published; publish it when nothing writes to it")]
    Changed,
    /// A file to publish cannot be read.
    #[error("could not read a file to publish")]
    File(#[source] std::io::Error),
    /// A file that is to become an artifact cannot be written.
    #[error("could not write an artifact; check the free space of the store's folder")]
    Draft(#[source] std::io::Error),
    /// No store can be opened at the address.
    #[error("could not open the store {address}: {why}")]
    Address {
        /// The address.
        address: String,
        /// The problem, and how to fix it.
        why: String,
    },
    /// The folder of a store cannot be created.
    #[error("could not make the store's folder {path}", path = .path.display())]
    Folder {
        /// The folder.
        path: std::path::PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A head or a version of a series cannot be read.
    #[error("could not read `{path}`; remove the series and publish it again")]
    Series {
        /// Path of the object in the store.
        path: String,
        /// The parse error.
        #[source]
        source: serde_json::Error,
    },
    /// Other publishers moved the head of a series all the time.
    #[error(
        "could not move the head of `{path}` in {attempts} attempts, because others moved it; publish again"
    )]
    Busy {
        /// Path of the series in the store.
        path: String,
        /// Number of attempts.
        attempts: u32,
    },
    /// The lock of a series cannot be taken.
    #[error("could not lock a series")]
    Lock(#[source] std::io::Error),
    /// The underlying object store failed.
    #[error("could not {action}")]
    Store {
        /// Attempted action.
        action: &'static str,
        /// The cause.
        #[source]
        source: object_store::Error,
    },
}

impl ArtifactError {
    pub(crate) fn address(address: &str, why: impl Into<String>) -> Self {
        Self::Address {
            address: address.to_owned(),
            why: why.into(),
        }
    }

    pub(crate) fn store(action: &'static str) -> impl FnOnce(object_store::Error) -> Self {
        move |source| Self::Store { action, source }
    }

    /// Names the artifact if the store reports that there is no such object.
    pub(crate) fn of(id: ArtifactId, action: &'static str) -> impl FnOnce(object_store::Error) -> Self {
        move |source| match source {
            object_store::Error::NotFound { .. } => Self::NotFound { id },
            source => Self::Store { action, source },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_found_below_other_errors() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let generic = object_store::Error::Generic {
            store: "LocalFileSystem",
            source: Box::new(full()),
        };
        assert!(is_disk_full(&ArtifactError::Draft(full())));
        assert!(is_disk_full(&ArtifactError::store("write an artifact")(generic)));
        assert!(!is_disk_full(&ArtifactError::Changed));
        assert!(!is_disk_full(&ArtifactError::Draft(
            io::ErrorKind::PermissionDenied.into()
        )));
    }
}
