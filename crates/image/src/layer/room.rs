//! Room on the disk for layers: which are used, how large they are, and which are removed.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::{LayerError, Record};
use crate::digest::walk;
use crate::{Home, IoResultExt, Lock, Result, is_id, names, remove};

/// Time since its last use after which a layer may be removed to make room.
pub(super) const UNUSED: Duration = Duration::from_hours(48);

/// Unit of a file's blocks.
const BLOCK: u64 = 512;

/// A use of a layer, which cannot be removed before the last clone of this is dropped.
#[derive(Clone, Debug)]
pub struct LayerUse(#[expect(dead_code, reason = "held for what its end does")] Arc<RoomLock>);

#[derive(Debug)]
struct RoomLock(Lock);

impl Drop for RoomLock {
    fn drop(&mut self) {
        self.0.touch();
    }
}

/// Layers that were removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovedLayers {
    /// Their number.
    pub layers: usize,
    /// Bytes that they took up on the disk.
    pub bytes: u64,
}

/// Begins a use of a layer; `None` if it is not there.
pub(super) fn hold(dir: &Path) -> Option<LayerUse> {
    let lock = Lock::shared(dir).ok()?;
    // It may have been removed before it was locked.
    if !lock.is_of(dir) {
        return None;
    }
    lock.touch();
    Some(LayerUse(Arc::new(RoomLock(lock))))
}

/// Makes room for a new layer of a size below a limit. `clean` empties the installer's cache, which
/// is done first.
pub(super) fn make(home: &Home, new: u64, limit: u64, clean: impl FnOnce()) -> Result<(), LayerError> {
    if new > limit {
        return Err(LayerError::TooLarge { actual: new, limit });
    }
    let taken = taken(home)?;
    if taken + cached(home) + new > limit {
        clean();
    }
    let short = (taken + new).saturating_sub(limit);
    if remove_unused(home, UNUSED, short)?.bytes < short {
        return Err(LayerError::NoRoom { new, taken, limit });
    }
    Ok(())
}

/// Removes layers that nobody uses and nobody has used for so long, the least recently used first,
/// until so many bytes are free.
pub(super) fn remove_unused(home: &Home, unused: Duration, bytes: u64) -> Result<RemovedLayers> {
    let mut removed = RemovedLayers::default();
    if bytes == 0 {
        return Ok(removed);
    }
    let mut layers = Vec::new();
    for id in ids(home)? {
        let dir = home.layers().join(&id);
        if let Ok(used) = fs::metadata(&dir).and_then(|found| found.modified()) {
            layers.push((used, id));
        }
    }
    layers.sort();
    let now = SystemTime::now();
    for (used, id) in layers {
        let is_unused = now.duration_since(used).is_ok_and(|age| age >= unused);
        if removed.bytes >= bytes || !is_unused {
            break;
        }
        let dir = home.layers().join(&id);
        let size = size(&dir)?;
        if remove_layer(home, &id)? {
            removed.layers += 1;
            removed.bytes += size;
        }
    }
    Ok(removed)
}

/// Removes a layer unless somebody uses it.
fn remove_layer(home: &Home, id: &str) -> Result<bool> {
    let dir = home.layers().join(id);
    let Some(lock) = Lock::try_exclusive(&dir)? else {
        return Ok(false);
    };
    let index = home.layer_index();
    for key in names(&index)? {
        if Record::read(home, &key).is_some_and(|record| record.id == id) {
            remove(&index.join(&key))?;
        }
    }
    // First renamed, so that no session finds half of it.
    let trash = home.staging(&format!("removed-layer-{id}"));
    if let Some(parent) = trash.parent() {
        fs::create_dir_all(parent).at("create", parent)?;
    }
    remove(&trash)?;
    fs::rename(&dir, &trash).at("move away", &dir)?;
    drop(lock);
    remove(&trash)?;
    Ok(true)
}

/// Size of all layers on the disk.
fn taken(home: &Home) -> Result<u64> {
    ids(home)?
        .iter()
        .try_fold(0, |sum, id| Ok(sum + size(&home.layers().join(id))?))
}

fn ids(home: &Home) -> Result<Vec<String>> {
    let mut ids = names(&home.layers())?;
    ids.retain(|id| is_id(id));
    Ok(ids)
}

/// Size of a folder's files on the disk.
pub(super) fn size(folder: &Path) -> Result<u64> {
    let mut files = HashMap::new();
    walk(folder, &mut |path, _| {
        let found = fs::symlink_metadata(path).at("look at", path)?;
        files.insert(found.ino(), found.blocks() * BLOCK);
        Ok(())
    })?;
    Ok(files.values().sum())
}

/// Size of what only the installer's cache has: packages of layers are links to it where the
/// filesystem cannot clone files.
fn cached(home: &Home) -> u64 {
    let mut bytes = 0;
    // Other programs may remove files from it meanwhile.
    let _ = walk(&home.cache().join("uv"), &mut |path, _| {
        if let Ok(found) = fs::symlink_metadata(path)
            && found.nlink() == 1
        {
            bytes += found.blocks() * BLOCK;
        }
        Ok(())
    });
    bytes
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    const DAY: Duration = Duration::from_hours(24);

    /// A layer of 64 KiB that was used so long ago, with the record by which it is found.
    fn layer(home: &Home, letter: char, unused: Duration) -> std::path::PathBuf {
        let id = String::from(letter).repeat(64);
        let dir = home.layers().join(&id);
        fs::create_dir_all(dir.join("package")).unwrap();
        fs::write(dir.join("package/data"), vec![7; 64 << 10]).unwrap();
        fs::create_dir_all(home.layer_index()).unwrap();
        let record = Record {
            id,
            image: "image".to_owned(),
            packages: Vec::new(),
        };
        let index = home.layer_index().join(format!("key-{letter}"));
        fs::write(index, serde_json::json!(record).to_string()).unwrap();
        let used = SystemTime::now() - unused;
        File::open(&dir).unwrap().set_modified(used).unwrap();
        dir
    }

    fn home() -> (tempfile::TempDir, Home) {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path()).unwrap();
        (dir, home)
    }

    fn letters(home: &Home) -> String {
        let mut ids = ids(home).unwrap();
        ids.sort();
        ids.iter().map(|id| &id[..1]).collect()
    }

    #[test]
    fn room_is_made_by_removing_the_least_recently_used_layers_that_nobody_uses() {
        let (_dir, home) = home();
        for (letter, days) in [('a', 9), ('b', 5), ('c', 7), ('d', 8), ('e', 1)] {
            layer(&home, letter, DAY * days);
        }
        let one = 64 << 10;
        make(&home, one, 6 * one, || panic!("there is room")).unwrap();
        assert_eq!(letters(&home), "abcde");
        let used = hold(&home.layers().join("a".repeat(64))).unwrap();
        let mut cleaned = false;
        make(&home, 2 * one, 5 * one, || cleaned = true).unwrap();
        assert!(cleaned);
        assert_eq!(letters(&home), "abe");
        let mut keys = names(&home.layer_index()).unwrap();
        keys.sort();
        assert_eq!(keys, ["key-a", "key-b", "key-e"]);
        // One is used, and one was used yesterday.
        let error = make(&home, 2 * one, 3 * one, || ()).unwrap_err();
        assert!(matches!(error, LayerError::NoRoom { .. }), "{error}");
        assert!(!error.is_callers());
        assert_eq!(letters(&home), "ae");
        // A use that ends counts as one.
        drop(used);
        make(&home, 2 * one, 3 * one, || ()).unwrap_err();
        assert_eq!(remove_unused(&home, Duration::ZERO, u64::MAX).unwrap().layers, 2);
        assert_eq!(letters(&home), "");
        assert_eq!(names(&home.layer_index()).unwrap(), [""; 0]);
    }

    #[test]
    fn a_layer_larger_than_the_limit_is_rejected_and_removes_nothing() {
        let (_dir, home) = home();
        layer(&home, 'a', DAY * 9);
        let error = make(&home, 101, 100, || ()).unwrap_err();
        assert!(error.to_string().contains("take up 101 bytes"), "{error}");
        assert!(error.is_callers());
        assert_eq!(letters(&home), "a");
    }

    #[test]
    fn a_use_keeps_a_layer_and_a_removed_layer_is_not_found() {
        let (_dir, home) = home();
        let dir = layer(&home, 'a', DAY * 9);
        let (one, other) = (hold(&dir).unwrap(), hold(&dir).unwrap());
        drop(one);
        let clone = other.clone();
        drop(other);
        assert!(!remove_layer(&home, &"a".repeat(64)).unwrap());
        drop(clone);
        assert!(remove_layer(&home, &"a".repeat(64)).unwrap());
        assert!(hold(&dir).is_none());
        assert_eq!(Record::read(&home, "key-a"), None);
    }

    #[test]
    fn what_the_cache_shares_with_layers_counts_once() {
        let (_dir, home) = home();
        let dir = layer(&home, 'a', DAY * 9);
        let cache = home.cache().join("uv");
        fs::create_dir_all(&cache).unwrap();
        fs::hard_link(dir.join("package/data"), cache.join("data")).unwrap();
        assert_eq!(cached(&home), 0);
        fs::write(cache.join("wheel"), vec![7; 64 << 10]).unwrap();
        assert_eq!(cached(&home), 64 << 10);
        assert_eq!(taken(&home).unwrap(), 64 << 10);
    }
}
