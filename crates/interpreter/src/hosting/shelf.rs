//! Volumes by their owners: one place in which faces keep files of their clients, and find them again.

use std::fmt::Debug;

use futures_util::future::BoxFuture;

use super::Owner;
use crate::volume::SessionVolume;

/// A volume as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeSummary {
    /// Its name.
    pub name: String,
    /// Size of all files of its last revision.
    pub bytes: u64,
}

/// Reason that a volume of a shelf cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShelfError {
    /// Its owner has no such volume.
    #[error("{0}")]
    Missing(String),
    /// Another session writes it.
    #[error("{0}")]
    Held(String),
    /// It is not a name that a volume can have.
    #[error("{0}")]
    Invalid(String),
    /// A limit or a quota has no room for it.
    #[error("{0}")]
    Full(String),
    /// The server failed; its log has the reason.
    #[error("{0}")]
    Failed(String),
}

/// Volumes of all owners, for faces that keep files of their clients in them.
pub trait VolumeShelf: Send + Sync + Debug {
    /// Opens the last revision of a volume to read it.
    fn read<'a>(
        &'a self,
        owner: &'a Owner,
        name: &'a str,
    ) -> BoxFuture<'a, Result<SessionVolume, ShelfError>>;

    /// Opens a volume for this writer, and creates it if it does not exist. Its keeper must be
    /// released.
    fn write<'a>(
        &'a self,
        owner: &'a Owner,
        name: &'a str,
        writer: &'a str,
    ) -> BoxFuture<'a, Result<SessionVolume, ShelfError>>;

    /// Lists the volumes of an owner.
    fn list<'a>(&'a self, owner: &'a Owner) -> BoxFuture<'a, Result<Vec<VolumeSummary>, ShelfError>>;

    /// Removes a volume with its files.
    fn remove<'a>(&'a self, owner: &'a Owner, name: &'a str) -> BoxFuture<'a, Result<(), ShelfError>>;
}
