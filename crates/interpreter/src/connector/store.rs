//! Fetched tables on their way into the artifact store, beside the cell that goes on.

use std::fmt;
use std::time::Duration;

use cellblock_artifact::{ArtifactDescription, Kind, Store};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::spawn_blocking;

use super::LargeAnswer;
use super::answer::UnstoredTable;
use crate::output::{ArtifactRef, DecodingLimits, PARQUET};

/// Maximum time to write a table and to store it.
const LIMIT: Duration = Duration::from_secs(30);

/// The end of storing a table: the artifact, or why there is none.
#[derive(Clone)]
pub(super) struct TableStorage(Shared<BoxFuture<'static, Result<ArtifactRef, String>>>);

impl fmt::Debug for TableStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Storing").finish_non_exhaustive()
    }
}

impl TableStorage {
    /// Starts to store a table. Its places are held until then, so that a session, and the host,
    /// have few tables in memory.
    pub(super) fn start(
        table: UnstoredTable,
        store: Store,
        limits: DecodingLimits,
        places: (OwnedSemaphorePermit, Option<LargeAnswer>),
    ) -> Self {
        let task = tokio::spawn(async move {
            let stored = tokio::time::timeout(LIMIT, stored(table, &store, limits)).await;
            drop(places);
            stored.unwrap_or_else(|_| Err(format!("it took longer than {} s", LIMIT.as_secs())))
        });
        let ended = async move { task.await.unwrap_or_else(|_| Err("the host failed".to_owned())) };
        Self(ended.boxed().shared())
    }

    /// Returns the artifact, if it is already stored.
    pub(super) fn stored(&self) -> Option<ArtifactRef> {
        self.0.peek()?.as_ref().ok().cloned()
    }

    /// Waits for the end.
    pub(super) async fn ended(&self) -> Result<ArtifactRef, String> {
        self.0.clone().await
    }
}

async fn stored(table: UnstoredTable, store: &Store, limits: DecodingLimits) -> Result<ArtifactRef, String> {
    let failed = |error: &(dyn std::error::Error + 'static)| {
        tracing::warn!(error, "could not store a fetched table");
        "the artifact store failed; its operator's log has the reason".to_owned()
    };
    let draft = store.draft().map_err(|error| failed(&error))?;
    let file = spawn_blocking(move || table.to_parquet(&limits, draft)).await;
    let file = file.map_err(|error| failed(&error))??;
    let bytes = file.len();
    let about = ArtifactDescription {
        kind: Kind::Result,
        media_type: PARQUET.to_owned(),
        origin: None,
    };
    let sha256 = store.put_draft(file, &about).await;
    Ok(ArtifactRef {
        sha256: sha256.map_err(|error| failed(&error))?,
        kind: about.kind,
        bytes,
        media_type: about.media_type,
    })
}
