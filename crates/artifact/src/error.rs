//! What can go wrong with a store.

use crate::ArtifactId;

/// A store that could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArtifactError {
    /// Nothing is stored under this name.
    #[error("artifact {id} is not in the store; it was removed, or never published here")]
    NotFound {
        /// The name.
        id: ArtifactId,
    },
    /// The stored bytes are not those that the name stands for.
    #[error("artifact {id} is damaged: its bytes hash to {actual}; remove it and publish it again")]
    Damaged {
        /// The name.
        id: ArtifactId,
        /// What the bytes hash to.
        actual: ArtifactId,
    },
    /// The metadata or an origin beside the bytes can not be read.
    #[error("could not read the metadata of artifact {id}; remove it and publish it again")]
    Metadata {
        /// The artifact.
        id: ArtifactId,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// The metadata or an origin can not be written as JSON.
    #[error("could not encode an artifact's metadata")]
    Encode(#[source] serde_json::Error),
    /// A range that the artifact does not have.
    #[error("bytes {start} to {end} are not within the {bytes} bytes of artifact {id}")]
    Range {
        /// The artifact.
        id: ArtifactId,
        /// The first byte.
        start: u64,
        /// The byte after the last one.
        end: u64,
        /// How many bytes the artifact has.
        bytes: u64,
    },
    /// A name that no owner of references can have.
    #[error(
        "{owner:?} cannot own references: expected at most {limit} ASCII letters, digits, `-`, `_` and `.`, the first a letter or digit"
    )]
    Owner {
        /// What was given, cut.
        owner: String,
        /// Most characters.
        limit: usize,
    },
    /// The file changed between the two times it was read.
    #[error("file changed while it was being published; publish it when nothing writes to it")]
    Changed,
    /// A file to publish can not be read.
    #[error("could not read a file to publish")]
    File(#[source] std::io::Error),
    /// An address at which no store can be opened.
    #[error("could not open the store {address}: {why}")]
    Address {
        /// The address.
        address: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// The folder of a store can not be made.
    #[error("could not make the store's folder {path}", path = .path.display())]
    Folder {
        /// The folder.
        path: std::path::PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The store underneath failed.
    #[error("could not {action}")]
    Store {
        /// What was tried.
        action: &'static str,
        /// Why it failed.
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

    /// Names the artifact when the store says that there is no such object.
    pub(crate) fn of(id: ArtifactId, action: &'static str) -> impl FnOnce(object_store::Error) -> Self {
        move |source| match source {
            object_store::Error::NotFound { .. } => Self::NotFound { id },
            source => Self::Store { action, source },
        }
    }
}
