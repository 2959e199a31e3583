//! Removing old artifacts without references.
//!
//! Publishers hold no lock, so a collector and a publisher of equal bytes must notice each other.
//! Before a collector checks an artifact for the last time, it marks it (`collecting/<sha256>`),
//! which only one collector can do. After a publisher has written or touched an artifact, it checks
//! for the mark. If there is one, the publisher waits until it is gone and starts again. If there
//! is none, either the collector comes later and sees that the artifact was touched or pinned, or
//! it is done, and the publisher sees what remains. The mark of a dead collector is valid for a
//! minute.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant, SystemTime};

use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::ObjectStoreExt;
use object_store::path::Path;

use crate::store::{id_of, object, origins, sidecar};
use crate::{ArtifactError, ArtifactId, Store};

/// Folder of the marks.
const FOLDER: &str = "collecting";
/// Number of artifacts that are marked at the same time.
const BATCH: usize = 64;
/// Maximum time that a collector works after it set a mark; the rest is left for the next
/// collection.
const WORK: Duration = Duration::from_secs(15);
/// Validity of a mark.
const MARK: Duration = Duration::from_mins(1);
/// Pause between a publisher's checks for a mark.
const LOOK: Duration = Duration::from_millis(20);
/// Maximum number of concurrent requests to the store.
const AT_ONCE: usize = 16;

/// Rules for keeping artifacts that have no references.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Time for which an artifact is kept after its last publication, including that of equal
    /// bytes.
    pub keep: Duration,
    /// Time after which references of an inactive owner are removed, as the owner may have died;
    /// `None` keeps them.
    pub pins: Option<Duration>,
}

/// Result of a collection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CollectionReport {
    /// Number of removed artifacts.
    pub artifacts: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// Number of remaining artifacts.
    pub kept: u64,
    /// Number of references removed with their owners.
    pub references: u64,
}

/// An object of a listing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ObjectEntry {
    pub(crate) bytes: u64,
    modified: SystemTime,
}

impl Store {
    /// Removes each artifact that is old, that no owner has pinned, that is not a version of a series,
    /// and that is not in the caller's `referenced`.
    ///
    /// It may run concurrently with publishers, readers and other collections. It removes artifacts
    /// like [`remove`](Self::remove), bytes last, so that every artifact with metadata can be read,
    /// even after a crash.
    pub async fn collect(
        &self,
        retention: &Retention,
        referenced: impl Fn(ArtifactId) -> bool,
    ) -> Result<CollectionReport, ArtifactError> {
        let mut collected = CollectionReport::default();
        if let Some(limit) = retention.pins {
            collected.references = self.forget_owners(limit).await?;
        }
        self.sweep_marks().await?;
        let found = self.ages().await?;
        let pinned = self.pinned().await?;
        let now = SystemTime::now();
        let old = |found: &ObjectEntry| age(now, found.modified) >= retention.keep;
        let doomed: Vec<_> = found
            .iter()
            .filter(|(id, found)| old(found) && !pinned.contains(*id) && !referenced(**id))
            .map(|(id, _)| *id)
            .collect();
        for batch in doomed.chunks(BATCH) {
            let removed = self.collect_batch(batch, retention.keep, &referenced).await?;
            collected.artifacts += removed.len() as u64;
            collected.bytes += removed.iter().map(|id| found[id].bytes).sum::<u64>();
        }
        collected.kept = found.len() as u64 - collected.artifacts;
        Ok(collected)
    }

    /// Returns, after an artifact was written or touched, whether no collector has removed it or is
    /// about to.
    pub(crate) async fn stays(&self, id: ArtifactId) -> Result<bool, ArtifactError> {
        Ok(!self.outlast_collection(id).await?
            && self.look(&object(id)).await?.is_some()
            && self.look(&sidecar(id)).await?.is_some())
    }

    /// Waits until no collector is about to remove an artifact. Returns whether one was.
    pub(crate) async fn outlast_collection(&self, id: ArtifactId) -> Result<bool, ArtifactError> {
        let mark = mark(id);
        let mut seen: Option<(SystemTime, Instant)> = None;
        while let Some(found) = self.look(&mark).await? {
            // The mark of another collector has its own minute.
            let since = match seen {
                Some((modified, since)) if modified == found.modified => since,
                _ => Instant::now(),
            };
            seen = Some((found.modified, since));
            if since.elapsed() >= MARK || age(SystemTime::now(), found.modified) >= MARK {
                self.delete(&mark, "remove a mark").await?;
            } else {
                tokio::time::sleep(LOOK).await;
            }
        }
        Ok(seen.is_some())
    }

    /// Marks a batch, checks again, removes what is still old and unreferenced, and removes the
    /// marks.
    async fn collect_batch(
        &self,
        batch: &[ArtifactId],
        keep: Duration,
        referenced: &impl Fn(ArtifactId) -> bool,
    ) -> Result<Vec<ArtifactId>, ArtifactError> {
        let started = Instant::now();
        let marks = stream::iter(batch.to_vec()).map(|id| async move {
            let created = self.create(&mark(id), &()).await;
            created.map(|created| created.then_some(id))
        });
        let marks: Vec<_> = marks.buffer_unordered(AT_ONCE).collect().await;
        // Artifacts that another collector has marked are left to it.
        let marked: Vec<_> = marks.iter().filter_map(|mark| *mark.as_ref().ok()?).collect();
        let result = match marks.into_iter().find_map(Result::err) {
            Some(error) => Err(error),
            None => self.collect_marked(&marked, started, keep, referenced).await,
        };
        // Removed after a failure, too: otherwise publishers would wait in vain.
        let taken =
            stream::iter(marked).map(|id| async move { self.delete(&mark(id), "remove a mark").await });
        let taken: Result<(), _> = taken.buffer_unordered(AT_ONCE).try_collect().await;
        let removed = result?;
        taken?;
        Ok(removed)
    }

    async fn collect_marked(
        &self,
        marked: &[ArtifactId],
        started: Instant,
        keep: Duration,
        referenced: &impl Fn(ArtifactId) -> bool,
    ) -> Result<Vec<ArtifactId>, ArtifactError> {
        let pinned = self.pinned().await?;
        let mut removed = Vec::new();
        for id in marked.iter().copied() {
            if started.elapsed() >= WORK {
                break;
            }
            let stays = pinned.contains(&id) || referenced(id);
            if !stays && self.is_still_old(id, keep).await? && self.remove(id).await? {
                removed.push(id);
            }
        }
        Ok(removed)
    }

    /// Compares the store's own times, so that clocks of two machines need not agree.
    async fn is_still_old(&self, id: ArtifactId, keep: Duration) -> Result<bool, ArtifactError> {
        let Some(mark) = self.look(&mark(id)).await? else {
            // Another process took the mark for a dead collector's.
            return Ok(false);
        };
        let Some(object) = self.look(&object(id)).await? else {
            return Ok(false);
        };
        let described = self.look(&sidecar(id)).await?.map(|found| found.modified);
        let newest = described.map_or(object.modified, |described| described.max(object.modified));
        Ok(age(mark.modified, newest) >= keep)
    }

    /// Returns when each artifact was last published.
    async fn ages(&self) -> Result<HashMap<ArtifactId, ObjectEntry>, ArtifactError> {
        let mut all = HashMap::new();
        let mut objects = self.objects.list(Some(&Path::from("objects")));
        while let Some(found) = objects.next().await {
            let found = found.map_err(ArtifactError::store("list artifacts"))?;
            if let Some(id) = id_of(&found.location) {
                let modified = found.last_modified.into();
                all.insert(
                    id,
                    ObjectEntry {
                        bytes: found.size,
                        modified,
                    },
                );
            }
        }
        let mut described = self.objects.list(Some(&Path::from("metadata")));
        while let Some(found) = described.next().await {
            let found = found.map_err(ArtifactError::store("list artifacts"))?;
            if let Some(artifact) = id_of(&found.location).and_then(|id| all.get_mut(&id)) {
                artifact.modified = artifact.modified.max(found.last_modified.into());
            }
        }
        Ok(all)
    }

    async fn pinned(&self) -> Result<HashSet<ArtifactId>, ArtifactError> {
        let mut pinned = self.in_series().await?;
        pinned.extend(self.owners().await?.into_iter().flat_map(|owner| owner.pins));
        Ok(pinned)
    }

    async fn forget_owners(&self, limit: Duration) -> Result<u64, ArtifactError> {
        let now = SystemTime::now();
        let mut forgotten = 0;
        for owner in self.owners().await? {
            if age(now, owner.newest) >= limit {
                forgotten += self.unpin(&owner.name).await?;
            }
        }
        Ok(forgotten)
    }

    /// Removes marks of collectors that died.
    async fn sweep_marks(&self) -> Result<(), ArtifactError> {
        let marks: Vec<_> = self
            .objects
            .list(Some(&Path::from(FOLDER)))
            .try_collect()
            .await
            .map_err(ArtifactError::store("list marks"))?;
        let now = SystemTime::now();
        for found in marks {
            if age(now, found.last_modified.into()) >= MARK {
                self.delete(&found.location, "remove a mark").await?;
            }
        }
        Ok(())
    }

    /// Looks for an object.
    pub(crate) async fn look(&self, location: &Path) -> Result<Option<ObjectEntry>, ArtifactError> {
        // Here and not on another thread, which takes longer than the call; publishing asks four times.
        let here = self
            .folder
            .as_ref()
            .map(|it| it.join(location.as_ref()).metadata());
        match here {
            Some(Ok(found)) => {
                let (bytes, modified) = (found.len(), found.modified().unwrap_or(SystemTime::UNIX_EPOCH));
                return Ok(found.is_file().then_some(ObjectEntry { bytes, modified }));
            }
            Some(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            // The store finds out what is wrong.
            _ => {}
        }
        match self.objects.head(location).await {
            Ok(found) => Ok(Some(ObjectEntry {
                bytes: found.size,
                modified: found.last_modified.into(),
            })),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(source) => Err(ArtifactError::Store {
                action: "look for an artifact",
                source,
            }),
        }
    }

    /// Deletes an object that may already be gone.
    pub(crate) async fn delete(&self, location: &Path, action: &'static str) -> Result<(), ArtifactError> {
        match self.objects.delete(location).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(source) => Err(ArtifactError::Store { action, source }),
        }
    }

    /// Removes an artifact's metadata and origins, then its bytes.
    pub(crate) async fn erase(&self, id: ArtifactId) -> Result<(), ArtifactError> {
        let action = "remove an artifact";
        let folder = origins(id);
        let mut doomed: Vec<_> = self
            .objects
            .list(Some(&folder))
            .map_ok(|origin| origin.location)
            .try_collect()
            .await
            .map_err(ArtifactError::store(action))?;
        doomed.extend([sidecar(id), object(id)]);
        for location in doomed {
            self.delete(&location, action).await?;
        }
        self.tidy_folder(&folder);
        Ok(())
    }

    /// Removes a folder that has become empty; other stores have no folders.
    pub(crate) fn tidy_folder(&self, folder: &Path) {
        if let Some(root) = &self.folder {
            // This fails, as intended, while the folder contains something.
            let _ = std::fs::remove_dir(root.join(folder.as_ref()));
        }
    }
}

fn mark(id: ArtifactId) -> Path {
    Path::from_iter([FOLDER.to_owned(), id.to_string()])
}

/// Returns the elapsed time; zero for times in the future.
fn age(now: SystemTime, then: SystemTime) -> Duration {
    now.duration_since(then).unwrap_or_default()
}
