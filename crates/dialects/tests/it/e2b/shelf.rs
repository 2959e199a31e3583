//! Volumes in memory, which outlive the servers that use them.

use std::collections::BTreeMap;
use std::sync::Arc;

use cellblock_interpreter::hosting::{Owner, ShelfError, VolumeShelf, VolumeSummary};
use cellblock_interpreter::volume::{SessionVolume, VolumeKeeper, VolumeManifest};
use futures_util::future::{BoxFuture, ready};
use parking_lot::Mutex;

/// Volumes by their owners and names.
#[derive(Clone, Debug, Default)]
pub(super) struct MemoryShelf(Arc<Mutex<BTreeMap<VolumeKey, MemoryVolume>>>);

type VolumeKey = (String, String);

#[derive(Clone, Debug, Default)]
struct MemoryVolume {
    revision: u64,
    manifest: VolumeManifest,
    /// Whether a session writes it.
    is_held: bool,
}

/// Keeper of one of them.
#[derive(Debug)]
struct MemoryKeeper(MemoryShelf, VolumeKey);

impl VolumeKeeper for MemoryKeeper {
    fn save<'a>(
        &'a self,
        _: &'a VolumeManifest,
        after: &'a VolumeManifest,
    ) -> BoxFuture<'a, Result<u64, String>> {
        let mut all = self.0.0.lock();
        let volume = all.get_mut(&self.1).unwrap();
        volume.revision += 1;
        volume.manifest.clone_from(after);
        Box::pin(ready(Ok(volume.revision)))
    }

    fn release(&self, _: bool) -> BoxFuture<'_, ()> {
        if let Some(volume) = self.0.0.lock().get_mut(&self.1) {
            volume.is_held = false;
        }
        Box::pin(ready(()))
    }
}

impl MemoryShelf {
    /// Returns it as terms of a server have it.
    pub(super) fn shared(&self) -> Arc<dyn VolumeShelf> {
        Arc::new(self.clone())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    fn open(&self, owner: &Owner, name: &str, writes: bool) -> Result<SessionVolume, ShelfError> {
        let key = (owner.name().to_owned(), name.to_owned());
        let mut all = self.0.lock();
        if writes {
            let volume = all.entry(key.clone()).or_default();
            if std::mem::replace(&mut volume.is_held, true) {
                return Err(held(name));
            }
        }
        let volume = all.get(&key).cloned().ok_or_else(|| missing(name))?;
        Ok(SessionVolume {
            name: name.to_owned(),
            revision: volume.revision,
            manifest: volume.manifest,
            keeper: writes.then(|| Arc::new(MemoryKeeper(self.clone(), key)) as _),
            max_bytes: 1 << 30,
            max_files: 100,
            notice: None,
        })
    }

    fn take(&self, owner: &Owner, name: &str) -> Result<(), ShelfError> {
        let key = (owner.name().to_owned(), name.to_owned());
        let mut all = self.0.lock();
        if all.get(&key).is_some_and(|it| it.is_held) {
            return Err(held(name));
        }
        all.remove(&key).map(drop).ok_or_else(|| missing(name))
    }
}

fn missing(name: &str) -> ShelfError {
    ShelfError::Missing(format!("there is no volume {name:?}"))
}

fn held(name: &str) -> ShelfError {
    ShelfError::Held(format!("a session writes the volume {name:?}"))
}

impl VolumeShelf for MemoryShelf {
    fn read<'a>(
        &'a self,
        owner: &'a Owner,
        name: &'a str,
    ) -> BoxFuture<'a, Result<SessionVolume, ShelfError>> {
        Box::pin(ready(self.open(owner, name, false)))
    }

    fn write<'a>(
        &'a self,
        owner: &'a Owner,
        name: &'a str,
        _: &'a str,
    ) -> BoxFuture<'a, Result<SessionVolume, ShelfError>> {
        Box::pin(ready(self.open(owner, name, true)))
    }

    fn list<'a>(&'a self, owner: &'a Owner) -> BoxFuture<'a, Result<Vec<VolumeSummary>, ShelfError>> {
        let all = self.0.lock();
        let own = all.iter().filter(|((of, _), _)| of == owner.name());
        let list = own.map(|((_, name), volume)| VolumeSummary {
            name: name.clone(),
            bytes: volume.manifest.bytes(),
        });
        Box::pin(ready(Ok(list.collect())))
    }

    fn remove<'a>(&'a self, owner: &'a Owner, name: &'a str) -> BoxFuture<'a, Result<(), ShelfError>> {
        Box::pin(ready(self.take(owner, name)))
    }
}
