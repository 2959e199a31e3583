//! References that keep an owner's artifacts from being collected.
//!
//! `references/<owner>/<sha256>` is an empty object, one per owner and artifact, so that no process
//! rewrites another's object, and all processes that share a store agree.

use std::collections::BTreeMap;
use std::time::SystemTime;

use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutPayload};

use crate::{ArtifactError, ArtifactId, Store};

/// Folder of the references.
const FOLDER: &str = "references";
/// Maximum length of an owner's name.
const OWNER_CHARS: usize = 128;
/// Maximum number of concurrent requests to the store.
const AT_ONCE: usize = 16;

/// An owner of references.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PinOwner {
    /// Name of the owner.
    pub name: String,
    /// Pinned artifacts.
    pub pins: Vec<ArtifactId>,
    /// Time of the last pin.
    pub newest: SystemTime,
}

impl Store {
    /// Keeps artifacts for an owner until it unpins them. Each must exist.
    pub async fn pin(
        &self,
        owner: &str,
        ids: impl IntoIterator<Item = ArtifactId>,
    ) -> Result<(), ArtifactError> {
        check(owner)?;
        let ids: Vec<_> = ids.into_iter().collect();
        stream::iter(ids)
            .map(|id| async move {
                let reference = reference(owner, id);
                let put = self.objects.put(&reference, PutPayload::new());
                put.await.map_err(ArtifactError::store("write a reference"))?;
                // A collection that started earlier sees the reference, or is seen here and waited
                // for.
                self.outlast_collection(id).await?;
                if self.exists(id).await? {
                    return Ok(());
                }
                self.delete(&reference, "remove a reference").await?;
                Err(ArtifactError::NotFound { id })
            })
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await
    }

    /// Removes all references of an owner; returns their number. Artifacts without other references
    /// may then be collected.
    pub async fn unpin(&self, owner: &str) -> Result<u64, ArtifactError> {
        check(owner)?;
        let folder = Path::from_iter([FOLDER, owner]);
        let found: Vec<_> = self
            .objects
            .list(Some(&folder))
            .map_ok(|object| object.location)
            .try_collect()
            .await
            .map_err(ArtifactError::store("list references"))?;
        let count = found.len() as u64;
        stream::iter(found)
            .map(|location| async move { self.delete(&location, "remove a reference").await })
            .buffer_unordered(AT_ONCE)
            .try_collect::<()>()
            .await?;
        self.tidy_folder(&folder);
        Ok(count)
    }

    /// Removes the references of an owner to some artifacts; those that do not exist are fine.
    pub async fn unpin_some(
        &self,
        owner: &str,
        ids: impl IntoIterator<Item = ArtifactId>,
    ) -> Result<(), ArtifactError> {
        check(owner)?;
        let references: Vec<_> = ids.into_iter().map(|id| reference(owner, id)).collect();
        stream::iter(references)
            .map(|location| async move { self.delete(&location, "remove a reference").await })
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await
    }

    /// Lists the owners of references, sorted by name.
    pub async fn owners(&self) -> Result<Vec<PinOwner>, ArtifactError> {
        let mut references = self.objects.list(Some(&Path::from(FOLDER)));
        let mut owners = BTreeMap::new();
        while let Some(found) = references.next().await {
            let found = found.map_err(ArtifactError::store("list references"))?;
            let Some((name, id)) = parse(&found.location) else {
                continue;
            };
            let modified = SystemTime::from(found.last_modified);
            let owner: &mut PinOwner = owners.entry(name.clone()).or_insert_with(|| PinOwner {
                name,
                pins: Vec::new(),
                newest: modified,
            });
            owner.newest = owner.newest.max(modified);
            owner.pins.push(id);
        }
        let mut owners: Vec<_> = owners.into_values().collect();
        for owner in &mut owners {
            owner.pins.sort_unstable();
        }
        Ok(owners)
    }
}

fn check(owner: &str) -> Result<(), ArtifactError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let begins = owner.chars().next().is_some_and(|c| c.is_ascii_alphanumeric());
    if begins && owner.len() <= OWNER_CHARS && owner.chars().all(plain) {
        return Ok(());
    }
    Err(ArtifactError::Owner {
        owner: owner.chars().take(OWNER_CHARS).collect(),
        limit: OWNER_CHARS,
    })
}

fn reference(owner: &str, id: ArtifactId) -> Path {
    Path::from_iter([FOLDER.to_owned(), owner.to_owned(), id.to_string()])
}

fn parse(location: &Path) -> Option<(String, ArtifactId)> {
    let mut parts = location.parts().skip(1);
    let owner = parts.next()?.as_ref().to_owned();
    let id = parts.next()?.as_ref().parse().ok()?;
    Some((owner, id))
}
