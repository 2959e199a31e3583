//! The same properties over every kind of store: in memory, in a folder, in S3.

mod address;
#[cfg(feature = "s3")]
mod s3;
mod series;
mod suite;

use std::sync::Arc;

use cellblock_artifact::Store;
use object_store::memory::InMemory;
use tempfile::TempDir;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_store_in_memory_passes_the_suite() {
    suite::run(|| Store::new(Arc::new(InMemory::new()))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_store_in_a_folder_passes_the_suite() {
    let folder = TempDir::new().unwrap();
    let mut next = 0;
    suite::run(|| {
        next += 1;
        Store::local(folder.path().join(next.to_string())).unwrap()
    })
    .await;
}
