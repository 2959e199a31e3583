//! Named series of versions, such as a dataset that is published again each month.
//!
//! `series/<path>/versions/<unix ms>-<sha256>.json` is one version, written once and never changed.
//! `series/<path>/head.json` describes the current one. The head moves by compare-and-set, so that
//! of two publishers at the same time neither loses its version. A store in a folder has no
//! compare-and-set; there, publishers hold a lock on `series/<path>/lock`.
//!
//! The artifact of a version is referenced by the name of the version's object, and is never
//! collected.

use std::collections::HashSet;
use std::fs::File;

use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutMode, PutOptions, UpdateVersion};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::task::spawn_blocking;

use crate::{ArtifactError, ArtifactId, Store};

/// Folder of all series.
const FOLDER: &str = "series";
const HEAD: &str = "head.json";
const VERSIONS: &str = "versions";
/// Maximum number of attempts to move a head.
const ATTEMPTS: u32 = 100;
/// Maximum number of concurrent requests to the store.
const AT_ONCE: usize = 16;

/// A series of versions.
#[derive(Debug, Clone)]
pub struct VersionSeries {
    store: Store,
    path: Path,
}

impl Store {
    /// Returns the series at a path, such as `["local", "macro", "gdp"]`. It may be empty.
    pub fn series(&self, path: &[&str]) -> VersionSeries {
        VersionSeries {
            store: self.shared().clone(),
            path: below(path),
        }
    }

    /// Returns the names of the series directly below a path, sorted.
    pub async fn series_below(&self, path: &[&str]) -> Result<Vec<String>, ArtifactError> {
        let found = self
            .shared()
            .objects
            .list_with_delimiter(Some(&below(path)))
            .await;
        let found = found.map_err(ArtifactError::store("list series"))?;
        let mut names: Vec<_> = found
            .common_prefixes
            .iter()
            .filter_map(|folder| folder.filename().map(str::to_owned))
            .collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Returns the artifacts of all versions of all series.
    pub(crate) async fn in_series(&self) -> Result<HashSet<ArtifactId>, ArtifactError> {
        let objects = self.shared().objects.list(Some(&Path::from(FOLDER)));
        let ids = objects.try_filter_map(async |found| Ok(version_id(&found.location)));
        ids.try_collect()
            .await
            .map_err(ArtifactError::store("list versions"))
    }
}

impl VersionSeries {
    /// Adds a version, whose artifact must exist, at about this time. Returns the time that it got.
    pub async fn append<V: Serialize>(
        &self,
        artifact: ArtifactId,
        mut unix_ms: u64,
        version: impl Fn(u64) -> V,
    ) -> Result<u64, ArtifactError> {
        loop {
            let location = self.version(unix_ms, artifact);
            if self.store.create(&location, &version(unix_ms)).await? {
                break;
            }
            unix_ms += 1;
        }
        // A collection that started earlier sees the version, or is seen here and waited for.
        self.store.outlast_collection(artifact).await?;
        if self.store.exists(artifact).await? {
            return Ok(unix_ms);
        }
        let location = self.version(unix_ms, artifact);
        self.store.delete(&location, "remove a version").await?;
        Err(ArtifactError::NotFound { id: artifact })
    }

    /// Replaces the head with what `change` makes of it. Between its last call and the write,
    /// nobody else has moved the head.
    pub async fn move_head<H: Serialize + DeserializeOwned>(
        &self,
        change: impl Fn(Option<H>) -> H,
    ) -> Result<H, ArtifactError> {
        const ACTION: &str = "move a head";
        let _lock = self.lock().await?;
        let location = self.path.clone().join(HEAD);
        for _ in 0..ATTEMPTS {
            let (head, mode) = match self.store.objects.get(&location).await {
                Ok(found) if self.store.folder.is_some() => (Some(found), PutMode::Overwrite),
                Ok(found) => {
                    let version = UpdateVersion {
                        e_tag: found.meta.e_tag.clone(),
                        version: found.meta.version.clone(),
                    };
                    (Some(found), PutMode::Update(version))
                }
                Err(object_store::Error::NotFound { .. }) => (None, PutMode::Create),
                Err(source) => return Err(ArtifactError::store(ACTION)(source)),
            };
            let head = match head {
                Some(found) => {
                    let json = found.bytes().await.map_err(ArtifactError::store(ACTION))?;
                    Some(parse(&location, &json)?)
                }
                None => None,
            };
            let head = change(head);
            let json = serde_json::to_vec(&head).map_err(ArtifactError::Encode)?;
            let options = PutOptions::from(mode);
            match self.store.objects.put_opts(&location, json.into(), options).await {
                Ok(_) => return Ok(head),
                Err(
                    object_store::Error::Precondition { .. }
                    | object_store::Error::AlreadyExists { .. }
                    // The head was removed meanwhile.
                    | object_store::Error::NotFound { .. },
                ) => {}
                Err(source) => return Err(ArtifactError::store(ACTION)(source)),
            }
        }
        Err(ArtifactError::Busy {
            path: self.path.to_string(),
            attempts: ATTEMPTS,
        })
    }

    /// Reads the head, if there is one.
    pub async fn head<H: DeserializeOwned>(&self) -> Result<Option<H>, ArtifactError> {
        self.read(&self.path.clone().join(HEAD)).await
    }

    /// Reads all versions, oldest first.
    pub async fn versions<V: DeserializeOwned>(&self) -> Result<Vec<V>, ArtifactError> {
        let folder = self.path.clone().join(VERSIONS);
        let mut found: Vec<_> = self
            .store
            .objects
            .list(Some(&folder))
            .map_ok(|version| version.location)
            .try_collect()
            .await
            .map_err(ArtifactError::store("list versions"))?;
        found.sort_unstable();
        let read = stream::iter(found).map(|location| async move { self.read(&location).await });
        let versions: Vec<Option<V>> = read.buffered(AT_ONCE).try_collect().await?;
        Ok(versions.into_iter().flatten().collect())
    }

    /// Removes the series: its head first, so that it is never seen in part. Returns whether there
    /// was one.
    pub async fn remove(&self) -> Result<bool, ArtifactError> {
        const ACTION: &str = "remove a series";
        let _lock = self.lock().await?;
        let head = self.path.clone().join(HEAD);
        let existed = self.read::<serde_json::Value>(&head).await?.is_some();
        self.store.delete(&head, ACTION).await?;
        let folder = self.path.clone().join(VERSIONS);
        let mut versions = self.store.objects.list(Some(&folder));
        while let Some(found) = versions.next().await {
            let found = found.map_err(ArtifactError::store(ACTION))?;
            self.store.delete(&found.location, ACTION).await?;
        }
        Ok(existed)
    }

    fn version(&self, unix_ms: u64, artifact: ArtifactId) -> Path {
        let name = format!("{unix_ms:015}-{artifact}.json");
        self.path.clone().join(VERSIONS).join(name)
    }

    async fn read<T: DeserializeOwned>(&self, location: &Path) -> Result<Option<T>, ArtifactError> {
        const ACTION: &str = "read a series";
        let found = match self.store.objects.get(location).await {
            Ok(found) => found,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(source) => return Err(ArtifactError::store(ACTION)(source)),
        };
        let json = found.bytes().await.map_err(ArtifactError::store(ACTION))?;
        parse(location, &json).map(Some)
    }

    /// Excludes other publishers of a store in a folder, until the file is dropped.
    async fn lock(&self) -> Result<Option<File>, ArtifactError> {
        let Some(folder) = &self.store.folder else {
            return Ok(None);
        };
        let folder = folder.join(self.path.as_ref());
        let locked = spawn_blocking(move || {
            std::fs::create_dir_all(&folder)?;
            let lock = File::create(folder.join("lock"))?;
            lock.lock()?;
            Ok(lock)
        });
        let locked = locked.await.expect("locking does not panic");
        locked.map(Some).map_err(ArtifactError::Lock)
    }
}

fn below(path: &[&str]) -> Path {
    [FOLDER].iter().chain(path).copied().collect()
}

fn parse<T: DeserializeOwned>(location: &Path, json: &[u8]) -> Result<T, ArtifactError> {
    serde_json::from_slice(json).map_err(|source| ArtifactError::Series {
        path: location.to_string(),
        source,
    })
}

/// Returns the artifact that the location of a version names.
fn version_id(location: &Path) -> Option<ArtifactId> {
    let (_, id) = location.filename()?.strip_suffix(".json")?.split_once('-')?;
    id.parse().ok()
}
