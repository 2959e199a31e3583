//! Lifetime of results.

use std::time::Duration;

use cellblock_artifact::{Retention, Store};
use cellblock_interpreter::alias::{AliasError, AliasStore, Bounds};
use cellblock_testkit::wait::until_ok;
use serde_json::json;
use tempfile::TempDir;

use super::{local, read};

const NOTHING: Retention = Retention {
    keep: Duration::ZERO,
    pins: None,
};

async fn collected(store: &Store) -> u64 {
    store.collect(&NOTHING, |_| false).await.unwrap().artifacts
}

#[tokio::test]
async fn results_are_kept_from_collection_until_the_store_is_closed() {
    let (_folder, store) = local();
    store.record("a", &json!(1)).await.unwrap();
    let artifacts = store.artifacts().clone();
    assert_eq!(collected(&artifacts).await, 0);
    let late = store.record("a", &json!(2));
    store.close().await.unwrap();
    assert!(matches!(late.await, Err(AliasError::Closed)));
    let error = store.record("a", &json!(3)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "results are no longer recorded here; the turn has ended"
    );
    assert_eq!(artifacts.owners().await.unwrap(), []);
    assert_eq!(collected(&artifacts).await, 2);
    assert_eq!(artifacts.list().await.unwrap(), []);
}

#[tokio::test]
async fn a_dropped_store_gives_its_results_up() {
    let (_folder, store) = local();
    store.record("a", &json!(1)).await.unwrap();
    let artifacts = store.artifacts().clone();
    let clone = store.clone();
    drop(store);
    assert_eq!(artifacts.owners().await.unwrap().len(), 1);
    drop(clone);
    until_ok(async || match &artifacts.owners().await.unwrap()[..] {
        [] => Ok(()),
        left => Err(format!("{left:?}")),
    })
    .await;
}

#[tokio::test]
async fn a_saved_store_continues_after_a_restart() {
    let folder = TempDir::new().unwrap();
    let open = || Store::local(folder.path()).unwrap();
    let store = AliasStore::new(open(), "session-7", Bounds::default());
    store.record("a", &json!([1])).await.unwrap();
    assert!(store.record_json("a", "{").await.is_err());
    store.record("b", &json!({"x": [1, {"y": "z"}]})).await.unwrap();
    let entries = store.entries();
    let saved = store.save().await.unwrap();
    drop(store);
    tokio::task::yield_now().await;
    assert_eq!(collected(&open()).await, 0);

    let store = AliasStore::load(open(), "session-7", Bounds::default(), saved)
        .await
        .unwrap();
    assert_eq!(store.entries(), entries);
    assert_eq!(read(store.content("a_1").await.unwrap()), b"[1]");
    assert_eq!(store.record("a", &json!(3)).await.unwrap().alias, "a_3");
    store.close().await.unwrap();
    assert_eq!(collected(&open()).await, 4);
    let gone = AliasStore::load(open(), "session-7", Bounds::default(), saved).await;
    assert!(matches!(gone, Err(AliasError::Store(_))));
}

#[tokio::test]
async fn invalid_lists_of_results_are_not_loaded() {
    let (_folder, store) = local();
    for document in [
        json!([1]),
        json!({"version": 2, "entries": [], "given": [], "numbers": {}}),
    ] {
        let other = store.record("a", &document).await.unwrap().sha256;
        let loaded = AliasStore::load(store.artifacts().clone(), "x", Bounds::default(), other).await;
        let error = loaded.unwrap_err();
        assert_eq!(
            error.to_string(),
            "could not read the saved list of results; record them again"
        );
    }
}
