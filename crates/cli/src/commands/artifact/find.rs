//! Artifacts by the beginning of their sha256, or by name.

use cellblock_artifact::{ArtifactId, Metadata, Store};

use super::SHORT;
use crate::artifact_store::failed;
use crate::error::{Error, Result};
use crate::sanitize;

/// Digits that are enough to look for.
const LEAST: usize = 4;
/// Artifacts that are named where several fit.
const NAMED: usize = 5;

/// Returns the metadata of every artifact, newest first. One without metadata is left out: it is being
/// written, or being removed.
pub(super) async fn all(store: &Store) -> Result<Vec<Metadata>> {
    let mut all = Vec::new();
    for id in store.list().await.map_err(failed("list artifacts"))? {
        if let Some(metadata) = metadata(store, id).await? {
            all.push(metadata);
        }
    }
    all.sort_by_key(|it| (std::cmp::Reverse(it.created_unix_ms), it.sha256));
    Ok(all)
}

/// The only artifact that somebody can mean.
pub(super) async fn one(store: &Store, named: &str) -> Result<Metadata> {
    let named = named.strip_prefix("artifact:").unwrap_or(named);
    let digits = named.to_ascii_lowercase();
    let mut found = Vec::new();
    if digits.len() >= LEAST && digits.chars().all(|it| it.is_ascii_hexdigit()) {
        for id in store.list().await.map_err(failed("list artifacts"))? {
            if id.to_string().starts_with(&digits) {
                found.extend(metadata(store, id).await?);
            }
        }
    }
    if found.is_empty() {
        let is_named = |it: &Metadata| {
            it.origins
                .iter()
                .any(|origin| origin.name.as_deref() == Some(named))
        };
        found = all(store).await?;
        found.retain(is_named);
    }
    let shown = sanitize::line(named);
    if found.len() > 1 {
        let ids = found
            .iter()
            .take(NAMED)
            .map(|it| it.sha256.to_string()[..SHORT].to_owned());
        return Err(Error::Refused(format!(
            "`{shown}` fits {} artifacts: {}; give more digits of the sha256",
            found.len(),
            ids.collect::<Vec<_>>().join(", ")
        )));
    }
    found.pop().ok_or_else(|| {
        Error::Refused(format!(
            "no artifact's sha256 begins with `{shown}`, and none has that name; `cellblock artifact \
             list` shows them"
        ))
    })
}

async fn metadata(store: &Store, id: ArtifactId) -> Result<Option<Metadata>> {
    match store.metadata(id).await {
        Ok(metadata) => Ok(Some(metadata)),
        Err(cellblock_artifact::ArtifactError::NotFound { .. }) => Ok(None),
        Err(error) => Err(failed("read what is known of an artifact")(error)),
    }
}
