//! Results of tools: recorded whole, named in order, handed on byte for byte. No sandbox is needed.

mod bounds;
mod dataset;
mod keeping;
mod record;
mod shape;
mod splice;
mod tables;
mod view;

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::sync::Arc;

use cellblock_artifact::{ArtifactId, Store, Urls};
use cellblock_interpreter::alias::{AliasStore, Bounds};
use object_store::memory::InMemory;
use tempfile::TempDir;

/// A store on a folder that is removed with the first value.
fn local() -> (TempDir, AliasStore) {
    let folder = TempDir::new().unwrap();
    let store = Store::local(folder.path()).unwrap();
    (folder, AliasStore::new(store, "turn-1", Bounds::default()))
}

fn in_memory() -> AliasStore {
    let store = Store::new(Arc::new(InMemory::new()));
    AliasStore::new(store, "turn-1", Bounds::default())
}

fn file(content: impl AsRef<[u8]>) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content.as_ref()).unwrap();
    file.rewind().unwrap();
    file
}

fn read(mut from: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).unwrap();
    bytes
}

/// Fails to compile where a future could not move between threads.
#[test]
fn every_future_of_a_store_can_be_spawned() {
    fn spawned(_: impl Send) {}
    let store = in_memory();
    spawned(store.splice(&[("a", "b")]));
    spawned(store.content("a"));
    spawned(store.reader("a"));
    spawned(store.save());
    spawned(store.close());
    spawned(store.canonical_dataset(&["a"], None, &Urls::default()));
    spawned(AliasStore::load(
        store.artifacts().clone(),
        "x",
        Bounds::default(),
        ArtifactId::of(b""),
    ));
}
