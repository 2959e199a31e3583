//! A store on this machine in front of a remote one.

use std::sync::Arc;

use cellblock_artifact::{ArtifactDescription, ArtifactError, ArtifactId, Kind, Origin, Store};
use object_store::ObjectStore;
use object_store::memory::InMemory;
use serde_json::{Value, json};
use tempfile::TempDir;

fn about(session: &str) -> ArtifactDescription {
    ArtifactDescription {
        kind: Kind::Result,
        media_type: "text/plain".into(),
        origin: Some(Origin {
            session: session.into(),
            ..Origin::default()
        }),
    }
}

/// Two machines with one remote store.
struct Machines {
    _folders: [TempDir; 2],
    locals: [Store; 2],
    remote: Store,
    tiered: [Store; 2],
}

fn machines() -> Machines {
    let folders = [TempDir::new().unwrap(), TempDir::new().unwrap()];
    let locals = [0, 1].map(|number| Store::local(folders[number].path()).unwrap());
    let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let remote = Store::new(objects);
    let tiered = locals.clone().map(|local| Store::tiered(local, remote.clone()));
    Machines {
        _folders: folders,
        locals,
        remote,
        tiered,
    }
}

#[tokio::test]
async fn an_artifact_is_in_both_stores_and_read_on_any_machine() {
    let it = machines();
    let id = it.tiered[0].put("hello", &about("s")).await.unwrap();
    for store in [&it.locals[0], &it.remote, &it.tiered[1]] {
        assert!(store.exists(id).await.unwrap());
    }
    assert!(!it.locals[1].exists(id).await.unwrap());
    assert_eq!(it.tiered[1].get(id).await.unwrap(), "hello");
    // It is local now, with what is known of it.
    let metadata = it.locals[1].metadata(id).await.unwrap();
    assert_eq!((&*metadata.media_type, metadata.origins.len()), ("text/plain", 1));
    it.remote.remove(id).await.unwrap();
    assert_eq!(it.tiered[1].get(id).await.unwrap(), "hello");
}

#[tokio::test]
async fn damaged_bytes_are_restored_by_every_way_of_reading() {
    let it = machines();
    let store = &it.tiered[0];
    let id = store.put("hello", &about("s")).await.unwrap();
    let path = it.locals[0].local_path(id).unwrap();
    let damage = || std::fs::write(&path, "HELLO").unwrap();
    damage();
    assert!(matches!(
        store.check(id).await,
        Err(ArtifactError::Damaged { .. })
    ));
    store.verify(id).await.unwrap();
    damage();
    assert_eq!(store.get(id).await.unwrap(), "hello");
    damage();
    let mut reader = store.reader(id).await.unwrap();
    assert_eq!(reader.next().await.unwrap().unwrap(), "hello");
    damage();
    let file = store.file(id).await.unwrap();
    assert_eq!(std::io::read_to_string(file).unwrap(), "hello");
    std::fs::remove_file(&path).unwrap();
    assert_eq!(store.get_range(id, 1..3).await.unwrap(), "el");
    it.locals[0].verify(id).await.unwrap();
}

#[tokio::test]
async fn what_the_remote_store_lacks_or_has_damaged_is_not_restored() {
    let it = machines();
    let absent = ArtifactId::of(b"absent");
    for store in &it.tiered {
        let error = store.get(absent).await.unwrap_err();
        assert!(
            matches!(error, ArtifactError::NotFound { id } if id == absent),
            "{error}"
        );
    }
    // Only on this machine.
    let id = it.locals[0].put("hello", &about("s")).await.unwrap();
    std::fs::write(it.locals[0].local_path(id).unwrap(), "HELLO").unwrap();
    let error = it.tiered[0].get(id).await.unwrap_err();
    assert!(matches!(error, ArtifactError::Damaged { .. }), "{error}");
    // Damaged in a remote store that is a folder.
    let folder = TempDir::new().unwrap();
    let remote = Store::local(folder.path()).unwrap();
    let store = Store::tiered(it.locals[1].clone(), remote.clone());
    let id = remote.put("hello", &about("s")).await.unwrap();
    std::fs::write(remote.local_path(id).unwrap(), "HELLO").unwrap();
    assert!(store.get(id).await.is_err());
    assert_eq!(it.locals[1].local_path(id), None);
}

#[tokio::test]
async fn publishing_fails_if_the_remote_store_cannot_be_written() {
    let (local, remote) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let folder = remote.path().join("gone");
    let down = Store::local(&folder).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::write(&folder, "a file, not a folder").unwrap();
    let store = Store::tiered(Store::local(local.path()).unwrap(), down);
    let error = store.put("hello", &about("s")).await.unwrap_err();
    assert!(matches!(error, ArtifactError::Store { .. }), "{error}");
    let series = store.series(&["me", "p", "s"]);
    assert!(series.move_head(|_: Option<Value>| json!(1)).await.is_err());
}

#[tokio::test]
async fn machines_share_series() {
    let it = machines();
    let id = it.tiered[0].put("hello", &about("s")).await.unwrap();
    let series = |of: usize| it.tiered[of].series(&["me", "p", "s"]);
    series(0).append(id, 1, |at| json!({ "at": at })).await.unwrap();
    series(0)
        .move_head(|_: Option<Value>| json!({"current": id}))
        .await
        .unwrap();
    let head: Value = series(1).head().await.unwrap().unwrap();
    assert_eq!(head["current"], json!(id));
    assert_eq!(it.tiered[1].series_below(&["me", "p"]).await.unwrap(), ["s"]);
    assert_eq!(it.tiered[1].get(id).await.unwrap(), "hello");
}
