//! Stores on a folder and in memory: equal bytes once, origins kept, damage noticed.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use cellblock_artifact::{ArtifactDescription, ArtifactError, ArtifactId, Kind, Origin, Store};
use object_store::memory::InMemory;
use tempfile::TempDir;

fn local() -> (TempDir, Store) {
    let folder = TempDir::new().unwrap();
    let store = Store::local(folder.path().join("store")).unwrap();
    (folder, store)
}

fn about(cell: u64) -> ArtifactDescription {
    let origin = Origin {
        session: "s".into(),
        cell: Some(cell),
        name: Some("df".into()),
        inputs: vec![],
    };
    ArtifactDescription {
        kind: Kind::Dataframe,
        media_type: "text/plain".into(),
        origin: Some(origin),
    }
}

fn files(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| if path.is_dir() { files(&path) } else { 1 })
        .sum()
}

#[tokio::test]
async fn published_bytes_are_read_back_whole_and_in_parts() {
    let (_folder, here) = local();
    for store in [here, Store::new(Arc::new(InMemory::new()))] {
        let id = store.put("hello", &about(1)).await.unwrap();
        assert_eq!(id, ArtifactId::of(b"hello"));
        assert_eq!(store.get(id).await.unwrap(), "hello");
        assert_eq!(store.get_range(id, 1..4).await.unwrap(), "ell");
        assert_eq!(store.get_range(id, 5..5).await.unwrap(), "");
        let error = store.get_range(id, 2..6).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("bytes 2 to 6 are not within the 5 bytes of artifact {id}")
        );
        let mut reader = store.reader(id).await.unwrap();
        assert_eq!(reader.next().await.unwrap().unwrap(), "hello");
        assert_eq!(reader.next().await.unwrap(), None);
        assert_eq!(reader.next().await.unwrap(), None);
        assert!(store.exists(id).await.unwrap());
        assert_eq!(store.list().await.unwrap(), [id]);
    }
}

#[tokio::test]
async fn equal_bytes_are_stored_once_and_every_distinct_origin_is_kept_in_order() {
    let (folder, store) = local();
    let id = store.put("x", &about(1)).await.unwrap();
    let other = ArtifactDescription {
        kind: Kind::File,
        media_type: "text/csv".into(),
        ..about(2)
    };
    assert_eq!(store.put("x", &other).await.unwrap(), id);
    store.put("x", &about(1)).await.unwrap();
    let metadata = store.metadata(id).await.unwrap();
    assert_eq!(
        (metadata.kind, metadata.media_type.as_str(), metadata.bytes),
        (Kind::Dataframe, "text/plain", 1)
    );
    assert_eq!(
        metadata.origins,
        [about(1).origin.unwrap(), about(2).origin.unwrap()]
    );
    assert!(metadata.created_unix_ms > 1_600_000_000_000);
    assert_eq!(files(&folder.path().join("store/objects")), 1);
    assert_eq!(files(folder.path()), 4);
}

#[tokio::test]
async fn a_file_is_published_from_its_first_byte_whatever_its_size() {
    let (_folder, store) = local();
    for size in [0, 1, 1 << 20, (6 << 20) + 17] {
        let bytes: Vec<u8> = (0..size).map(|at: u32| at.to_le_bytes()[1]).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let id = store
            .put_file(file.try_clone().unwrap(), &about(1))
            .await
            .unwrap();
        assert_eq!(store.put_file(file, &about(1)).await.unwrap(), id);
        assert!(store.get(id).await.unwrap() == bytes);
        assert_eq!(id, ArtifactId::of(&bytes));
        let mut reader = store.reader(id).await.unwrap();
        let mut read = 0;
        while let Some(piece) = reader.next().await.unwrap() {
            read += piece.len();
        }
        assert_eq!(read, bytes.len());
    }
}

#[tokio::test]
async fn a_draft_is_published_as_it_was_written_and_leaves_nothing_otherwise() {
    let (folder, store) = local();
    for store in [store.clone(), Store::new(Arc::new(InMemory::new()))] {
        let mut draft = store.draft().unwrap();
        assert!(draft.is_empty());
        draft.write_all(b"hel").unwrap();
        draft.write_all(b"lo").unwrap();
        assert_eq!(draft.len(), 5);
        let id = store.put_draft(draft, &about(1)).await.unwrap();
        assert_eq!(id, ArtifactId::of(b"hello"));
        assert_eq!(store.get(id).await.unwrap(), "hello");
    }
    let before = files(folder.path());
    store.draft().unwrap().write_all(b"unused").unwrap();
    let mut again = store.draft().unwrap();
    again.write_all(b"hello").unwrap();
    store.put_draft(again, &about(1)).await.unwrap();
    assert_eq!(files(folder.path()), before);
}

#[tokio::test]
async fn a_draft_replaces_damaged_bytes() {
    let (_folder, store) = local();
    let id = store.put("hello", &about(1)).await.unwrap();
    for damaged in ["hell", "jello", ""] {
        fs::write(store.local_path(id).unwrap(), damaged).unwrap();
        let mut draft = store.draft().unwrap();
        draft.write_all(b"hello").unwrap();
        assert_eq!(store.put_draft(draft, &about(1)).await.unwrap(), id);
        assert_eq!(store.get(id).await.unwrap(), "hello");
    }
}

#[tokio::test]
async fn damaged_bytes_are_an_error_and_are_replaced_when_they_are_published_again() {
    let (_folder, store) = local();
    let id = store.put("hello", &about(1)).await.unwrap();
    let path = store.local_path(id).unwrap();
    fs::write(&path, "jello").unwrap();
    let error = store.get(id).await.unwrap_err();
    let jello = ArtifactId::of(b"jello");
    assert!(
        matches!(error, ArtifactError::Damaged { id: of, actual } if of == id && actual == jello),
        "{error}"
    );
    let mut reader = store.reader(id).await.unwrap();
    assert!(reader.next().await.unwrap().is_some());
    assert!(matches!(reader.next().await, Err(ArtifactError::Damaged { .. })));
    for damaged in ["hell", "jello", ""] {
        fs::write(&path, damaged).unwrap();
        assert!(matches!(
            store.verify(id).await,
            Err(ArtifactError::Damaged { .. })
        ));
        store.put("hello", &about(1)).await.unwrap();
        assert_eq!(store.get(id).await.unwrap(), "hello");

        fs::write(&path, damaged).unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"hello").unwrap();
        store.put_file(file, &about(1)).await.unwrap();
        store.verify(id).await.unwrap();
    }
}

#[tokio::test]
async fn damaged_metadata_is_an_error_that_names_the_artifact() {
    let (folder, store) = local();
    let id = store.put("hello", &about(1)).await.unwrap();
    let digits = id.to_string();
    let sidecar = folder
        .path()
        .join(format!("store/metadata/{}/{}.json", &digits[..2], &digits[2..]));
    fs::write(sidecar, "{").unwrap();
    let error = store.metadata(id).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("could not read the metadata of artifact {id}; remove it and publish it again")
    );
    assert!(store.remove(id).await.unwrap());
}

#[tokio::test]
async fn a_missing_artifact_is_an_error_that_names_it() {
    let (_folder, store) = local();
    let id = ArtifactId::of(b"absent");
    assert!(matches!(store.get(id).await, Err(ArtifactError::NotFound { .. })));
    assert!(matches!(
        store.reader(id).await,
        Err(ArtifactError::NotFound { .. })
    ));
    assert!(matches!(
        store.get_range(id, 0..1).await,
        Err(ArtifactError::NotFound { .. })
    ));
    assert!(matches!(
        store.metadata(id).await,
        Err(ArtifactError::NotFound { .. })
    ));
    assert!(!store.exists(id).await.unwrap());
    assert!(!store.remove(id).await.unwrap());
    assert_eq!(store.local_path(id), None);
    assert_eq!(store.list().await.unwrap(), []);
}

#[tokio::test]
async fn removing_an_artifact_leaves_nothing_of_it_and_keeps_others() {
    let (folder, store) = local();
    let id = store.put("x", &about(1)).await.unwrap();
    let kept = store.put("y", &about(1)).await.unwrap();
    assert!(store.remove(id).await.unwrap());
    assert!(!store.exists(id).await.unwrap());
    assert_eq!(store.list().await.unwrap(), [kept]);
    assert_eq!(files(folder.path()), 3);
}

#[tokio::test]
async fn an_artifact_has_a_path_only_in_a_folder() {
    let (folder, store) = local();
    let id = store.put("x", &about(1)).await.unwrap();
    let path = store.local_path(id).unwrap();
    assert!(path.starts_with(folder.path()));
    assert_eq!(fs::read(path).unwrap(), b"x");
    assert_eq!(
        fs::metadata(folder.path().join("store"))
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o700
    );
    let elsewhere = Store::new(Arc::new(InMemory::new()));
    let id = elsewhere.put("x", &about(1)).await.unwrap();
    assert_eq!(elsewhere.local_path(id), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_publishers_of_the_same_and_of_other_bytes_all_succeed() {
    let (folder, store) = local();
    let mut tasks = tokio::task::JoinSet::new();
    for cell in 0..64_u64 {
        let store = store.clone();
        tasks.spawn(async move {
            let text = format!("bytes {}", cell % 4).repeat(10_000);
            if cell % 2 == 0 {
                return store.put(text, &about(cell)).await.unwrap();
            }
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            store.put_file(file, &about(cell)).await.unwrap()
        });
    }
    let ids = tasks.join_all().await;
    assert_eq!(store.list().await.unwrap().len(), 4);
    for id in ids {
        assert_eq!(ArtifactId::of(&store.get(id).await.unwrap()), id);
        let mut cells: Vec<_> = store
            .metadata(id)
            .await
            .unwrap()
            .origins
            .iter()
            .map(|origin| origin.cell.unwrap() % 4)
            .collect();
        assert_eq!(cells.len(), 16);
        cells.dedup();
        assert_eq!(cells.len(), 1);
    }
    // No staged upload is left behind: 4 objects, 4 sidecars and 64 origins.
    assert_eq!(files(folder.path()), 72);
}
