//! Volumes of all owners, for the operator of a gateway.

use cellblock_artifact::Store;
use serde::Serialize;

use super::VolumeAnswer;
use crate::records::{Records, RecordsError, VolumeRemoval};

/// The volumes in a gateway's records.
#[derive(Clone, Debug)]
pub struct Volumes {
    records: Records,
    store: Store,
}

/// A volume with its owner.
#[derive(Clone, Debug, Serialize)]
pub struct OwnedVolume {
    /// ID of the key that owns it, or `local` if it was made without keys.
    pub owner: String,
    /// The volume.
    #[serde(flatten)]
    pub volume: VolumeAnswer,
}

impl Volumes {
    /// The volumes of these records, whose contents are in this store.
    pub const fn new(records: Records, store: Store) -> Self {
        Self { records, store }
    }

    /// Returns all volumes, the oldest first.
    pub async fn all(&self) -> Result<Vec<OwnedVolume>, RecordsError> {
        let rows = self.records.all_volumes().await?;
        Ok(rows
            .iter()
            .map(|row| OwnedVolume {
                owner: row.owner.clone(),
                volume: VolumeAnswer::of(row),
            })
            .collect())
    }

    /// Deletes a volume with its files; returns whether it is gone. One that a session writes stays.
    pub async fn delete(&self, volume: &OwnedVolume) -> Result<bool, RecordsError> {
        let removed = self
            .records
            .remove_volume(&volume.owner, &volume.volume.name)
            .await?;
        if let VolumeRemoval::Removed(row) = &removed {
            forget_contents(&self.store, &row.id).await;
        }
        Ok(!matches!(removed, VolumeRemoval::Writing(_)))
    }
}

/// Releases the contents of a volume that is not in the records any more. What stays after an error
/// costs space, and nothing else.
pub(super) async fn forget_contents(store: &Store, id: &str) {
    if let Err(error) = store.unpin(id).await {
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            volume = id,
            "release the contents of a volume"
        );
    }
}
