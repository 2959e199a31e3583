//! Results of tools: recorded whole, named in order, handed on byte for byte. No sandbox is needed.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bounds;
mod keeping;
mod record;
mod shape;
mod splice;
mod tables;

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::sync::Arc;

use cellblock_artifact::Store;
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
