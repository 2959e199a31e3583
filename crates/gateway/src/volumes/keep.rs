//! Saving what a session changes in its volume.

use std::collections::BTreeSet;

use cellblock_artifact::{ArtifactId, Store};
use cellblock_interpreter::volume::{VolumeKeeper, VolumeManifest};
use futures_util::future::BoxFuture;

use crate::now_ms;
use crate::quotas::Quotas;
use crate::records::{Records, VolumeRevision, VolumeWriter};
use crate::state::Gateway;

/// Text that the model reads if the server fails; only its log has the reason.
const FAILED: &str = "the server could not store it; its log has the reason";

/// Keeps the volume of one session in the records of the gateway.
#[derive(Debug)]
pub(super) struct RecordKeeper {
    records: Records,
    store: Store,
    quotas: Quotas,
    owner: String,
    /// ID of the volume, which is also the owner of its references in the store.
    id: String,
    writer: VolumeWriter,
}

impl RecordKeeper {
    pub(super) fn new(gateway: &Gateway, owner: &str, id: &str, writer: VolumeWriter) -> Self {
        Self {
            records: gateway.records.clone(),
            store: gateway.store.clone(),
            quotas: gateway.quotas.clone(),
            owner: owner.to_owned(),
            id: id.to_owned(),
            writer,
        }
    }

    async fn write(&self, before: &VolumeManifest, after: &VolumeManifest) -> Result<u64, String> {
        let failed = |error: &(dyn std::error::Error + 'static)| {
            tracing::error!(error, volume = self.id, "save a volume");
            FAILED.to_owned()
        };
        let more = after.bytes().saturating_sub(before.bytes());
        if more > 0 {
            let kept = self.records.stored_bytes(&self.owner).await;
            let kept = kept.map_err(|error| failed(&error))?;
            let room = self.quotas.store(&self.owner, kept, more).await;
            room.map_err(|error| format!("{}; delete stored files or volumes", error.message))?;
        }
        let manifest = serde_json::to_string(after).map_err(|error| failed(&error))?;
        let (old, new) = (contents(before), contents(after));
        // Before the manifest, so that what it names is never collected.
        let pinned = self.store.pin(&self.id, new.difference(&old).copied()).await;
        pinned.map_err(|error| failed(&error))?;
        let revision = VolumeRevision {
            manifest,
            bytes: i64::try_from(after.bytes()).unwrap_or(i64::MAX),
            files: i64::try_from(after.0.len()).unwrap_or(i64::MAX),
            saved_ms: now_ms(),
        };
        let saved = self.records.save_volume(&self.id, self.writer.clone(), revision);
        let saved = saved.await.map_err(|error| failed(&error))?;
        let number = saved.ok_or(
            "this session does not hold it any more, since its server was taken for lost; create another \
             session to write it",
        )?;
        // What stays after an error costs space, and nothing else.
        let unpinned = self
            .store
            .unpin_some(&self.id, old.difference(&new).copied())
            .await;
        if let Err(error) = unpinned {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                volume = self.id,
                "release contents of a volume"
            );
        }
        Ok(u64::try_from(number).unwrap_or(0))
    }
}

impl VolumeKeeper for RecordKeeper {
    fn save<'a>(
        &'a self,
        before: &'a VolumeManifest,
        after: &'a VolumeManifest,
    ) -> BoxFuture<'a, Result<u64, String>> {
        Box::pin(self.write(before, after))
    }

    fn release(&self, complete: bool) -> BoxFuture<'_, ()> {
        let state = if complete { "saved" } else { "incomplete" };
        Box::pin(async move {
            let released = self.records.release_volume(&self.id, self.writer.clone(), state);
            if let Err(error) = released.await {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    volume = self.id,
                    "release a volume"
                );
            }
        })
    }
}

fn contents(manifest: &VolumeManifest) -> BTreeSet<ArtifactId> {
    manifest.0.values().map(|file| file.sha256).collect()
}
