//! A store on this machine in front of a remote one.
//!
//! ```text
//! put ──> local ──> remote
//! get ──> local ── missing or damaged ──> remote, checked ──> local again
//! ```
//!
//! Series are those of the remote store, so that all machines that share it agree.

use std::io::{Seek, SeekFrom, Write};

use crate::{ArtifactDescription, ArtifactError, ArtifactId, Store};

impl Store {
    /// Keeps every artifact in both stores, and restores a missing or damaged local one from the
    /// remote store. `local` must not have a remote store itself.
    #[must_use]
    pub fn tiered(local: Self, remote: Self) -> Self {
        Self {
            remote: Some(Box::new(remote)),
            ..local
        }
    }

    /// Returns whether there is a remote store.
    pub fn has_remote(&self) -> bool {
        self.remote.is_some()
    }

    /// Lists the artifacts of this machine and of the remote store, sorted by id.
    pub async fn list_all(&self) -> Result<Vec<ArtifactId>, ArtifactError> {
        let mut ids = self.list().await?;
        if let Some(remote) = &self.remote {
            ids.extend(Box::pin(remote.list()).await?);
            ids.sort_unstable();
            ids.dedup();
        }
        Ok(ids)
    }

    /// Returns the store that has the series.
    pub(crate) fn shared(&self) -> &Self {
        self.remote.as_deref().unwrap_or(self)
    }

    /// Writes an artifact of this store to the remote one, if there is one.
    pub(crate) async fn write_through(
        &self,
        id: ArtifactId,
        about: &ArtifactDescription,
    ) -> Result<(), ArtifactError> {
        let Some(remote) = &self.remote else {
            return Ok(());
        };
        let copied = match self.local_path(id).map(std::fs::File::open) {
            Some(file) => Box::pin(remote.put_file(file.map_err(ArtifactError::File)?, about)).await,
            None => Box::pin(remote.put(self.read_whole(id).await?, about)).await,
        };
        copied.map(drop)
    }

    /// Restores the local bytes of an artifact, which are missing or damaged, and its metadata.
    /// Returns the local error if that is not possible.
    pub(crate) async fn heal(&self, id: ArtifactId, local: ArtifactError) -> Result<(), ArtifactError> {
        let can_heal = matches!(
            local,
            ArtifactError::NotFound { .. } | ArtifactError::Damaged { .. } | ArtifactError::File(_)
        );
        let Some(remote) = self.remote.as_ref().filter(|_| can_heal) else {
            return Err(local);
        };
        let mut file = tempfile::tempfile().map_err(ArtifactError::File)?;
        let mut reader = match Box::pin(remote.reader(id)).await {
            Ok(reader) => reader,
            Err(ArtifactError::NotFound { .. }) => return Err(local),
            Err(error) => return Err(error),
        };
        while let Some(piece) = reader.next().await? {
            file.write_all(&piece).map_err(ArtifactError::File)?;
        }
        file.seek(SeekFrom::Start(0)).map_err(ArtifactError::File)?;
        let metadata = Box::pin(remote.metadata(id)).await?;
        self.upload(file, id).await?;
        let about = ArtifactDescription {
            kind: metadata.kind,
            media_type: metadata.media_type,
            origin: None,
        };
        self.describe(id, metadata.bytes, &about).await?;
        for origin in &metadata.origins {
            self.add_origin(id, origin).await?;
        }
        metrics::counter!("cellblock_artifacts_healed_total").increment(1);
        tracing::warn!(
            %id,
            error = &local as &dyn std::error::Error,
            "restored an artifact from the remote store"
        );
        Ok(())
    }
}
