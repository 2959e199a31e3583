//! Volumes: folders of files that outlive the sessions that write them.
//!
//! ```text
//! SessionVolume ──manifest, artifacts──> /workspace/volume of each sandbox of the session
//!   VolumeKeeper <──────save──────────── after each cell, command and process, and at the end
//! ```
//!
//! The contents of files are artifacts; a manifest says which file has which. The keeper knows
//! where manifests are, and who may write.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use cellblock_artifact::ArtifactId;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

/// Directory in which a session finds the files of its volume.
pub const VOLUME_FOLDER: &str = "/workspace/volume";

/// A file of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeFile {
    /// Its permission bits.
    pub mode: u32,
    /// Its size.
    pub bytes: u64,
    /// Its contents.
    pub sha256: ArtifactId,
}

/// The files of a revision, by their paths below the folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VolumeManifest(pub BTreeMap<String, VolumeFile>);

impl VolumeManifest {
    /// Returns the size of all files.
    pub fn bytes(&self) -> u64 {
        self.0
            .values()
            .fold(0, |sum, file| sum.saturating_add(file.bytes))
    }
}

/// The volume of a session.
#[derive(Clone, Debug)]
pub struct SessionVolume {
    /// Its name, for notes.
    pub name: String,
    /// The revision that the session starts with.
    pub revision: u64,
    /// The files of this revision.
    pub manifest: VolumeManifest,
    /// Keeper that saves what the session changes; `None` if it only reads.
    pub keeper: Option<Arc<dyn VolumeKeeper>>,
    /// Maximum size of all files.
    pub max_bytes: u64,
    /// Maximum number of files.
    pub max_files: u32,
    /// Note for the first cell, such as what an earlier session could not save.
    pub notice: Option<String>,
}

/// Keeps the revisions of a volume that a session writes.
pub trait VolumeKeeper: Send + Sync + Debug {
    /// Saves a revision, whole or not at all, and returns its number. The contents of its files are
    /// stored already. An error is a reason for the model.
    fn save<'a>(
        &'a self,
        before: &'a VolumeManifest,
        after: &'a VolumeManifest,
    ) -> BoxFuture<'a, Result<u64, String>>;

    /// Lets other sessions write the volume. `complete` says whether everything that the session
    /// changed was saved.
    fn release(&self, complete: bool) -> BoxFuture<'_, ()>;
}
