//! References by which an owner keeps artifacts from being collected.
//!
//! `references/<owner>/<sha256>` is an empty object: one per owner and artifact, so that no process rewrites what
//! another wrote, and all that share a store agree.

use std::collections::BTreeMap;
use std::time::SystemTime;

use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutPayload};

use crate::{ArtifactError, ArtifactId, Store};

/// Where references are.
const FOLDER: &str = "references";
/// Longest name of an owner.
const OWNER_CHARS: usize = 128;
/// Requests to the store at the same time.
const AT_ONCE: usize = 16;

/// Who keeps artifacts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Owner {
    /// Its name.
    pub name: String,
    /// What it keeps.
    pub pins: Vec<ArtifactId>,
    /// When it last pinned something.
    pub newest: SystemTime,
}

impl Store {
    /// Keeps artifacts for an owner until it unpins them. Each must be here.
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
                // A collection that began before sees the reference, or is seen here and waited for.
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

    /// Ends all references of an owner; says how many there were. What nobody else refers to may then be collected.
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

    /// Names those who keep artifacts, in order of their names.
    pub async fn owners(&self) -> Result<Vec<Owner>, ArtifactError> {
        let mut references = self.objects.list(Some(&Path::from(FOLDER)));
        let mut owners = BTreeMap::new();
        while let Some(found) = references.next().await {
            let found = found.map_err(ArtifactError::store("list references"))?;
            let Some((name, id)) = parse(&found.location) else {
                continue;
            };
            let modified = SystemTime::from(found.last_modified);
            let owner: &mut Owner = owners.entry(name.clone()).or_insert_with(|| Owner {
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
