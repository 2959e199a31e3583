//! The behavior of every store.

use std::fs::File;
use std::io::Write;
use std::time::Duration;

use cellblock_artifact::{ArtifactDescription, ArtifactError, ArtifactId, Kind, Origin, Retention, Store};
use tokio::task::JoinSet;

use super::series;

pub(super) const ALL: Retention = Retention {
    keep: Duration::ZERO,
    pins: None,
};
const YOUNG: Retention = Retention {
    keep: Duration::from_hours(1),
    pins: None,
};

/// Runs everything, each part on an empty store.
pub(crate) async fn run(mut fresh: impl FnMut() -> Store) {
    bytes_are_read_back(&fresh()).await;
    files_are_read_back(&fresh()).await;
    what_was_said_first_stays_and_origins_are_added(&fresh()).await;
    what_is_not_there_is_an_error(&fresh()).await;
    removed_artifacts_are_gone(&fresh()).await;
    pinned_and_young_artifacts_are_not_collected(&fresh()).await;
    publishers_need_no_lock(&fresh()).await;
    publishers_and_collectors_need_no_lock(&fresh()).await;
    series::run(fresh).await;
}

pub(super) fn about(cell: u64) -> ArtifactDescription {
    ArtifactDescription {
        kind: Kind::Result,
        media_type: "application/json".into(),
        origin: Some(Origin {
            session: "s é/..".into(),
            cell: Some(cell),
            ..Origin::default()
        }),
    }
}

fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

async fn bytes_are_read_back(store: &Store) {
    assert_eq!(store.list().await.unwrap(), []);
    let id = store.put("hello", &about(1)).await.unwrap();
    let empty = store.put("", &about(1)).await.unwrap();
    assert_eq!(store.get(id).await.unwrap(), "hello");
    assert_eq!(store.get(empty).await.unwrap(), "");
    assert_eq!(store.get_range(id, 1..4).await.unwrap(), "ell");
    assert_eq!(store.get_range(id, 5..5).await.unwrap(), "");
    assert!(matches!(
        store.get_range(id, 2..6).await,
        Err(ArtifactError::Range { bytes: 5, .. })
    ));
    let mut ids = [id, empty];
    ids.sort_unstable();
    assert_eq!(store.list().await.unwrap(), ids);
    let mut reader = store.reader(id).await.unwrap();
    let mut read = Vec::new();
    while let Some(piece) = reader.next().await.unwrap() {
        read.extend_from_slice(&piece);
    }
    assert_eq!(read, b"hello");
}

async fn files_are_read_back(store: &Store) {
    // The last one is written in several parts.
    for size in [0, 1, 1 << 20, (11 << 20) + 17] {
        let bytes: Vec<u8> = (0..size).map(|at: u32| at.to_le_bytes()[1]).collect();
        let id = store.put_file(file(&bytes), &about(1)).await.unwrap();
        assert_eq!(id, ArtifactId::of(&bytes));
        assert!(store.get(id).await.unwrap() == bytes);
        assert_eq!(store.put(bytes, &about(1)).await.unwrap(), id);
        assert_eq!(store.metadata(id).await.unwrap().bytes, u64::from(size));
    }
}

async fn what_was_said_first_stays_and_origins_are_added(store: &Store) {
    let id = store.put("x", &about(1)).await.unwrap();
    let other = ArtifactDescription {
        kind: Kind::File,
        media_type: "text/csv".into(),
        ..about(2)
    };
    store.put("x", &other).await.unwrap();
    store.put("x", &about(1)).await.unwrap();
    let metadata = store.metadata(id).await.unwrap();
    assert_eq!(
        (metadata.kind, metadata.media_type.as_str()),
        (Kind::Result, "application/json")
    );
    let mut cells: Vec<_> = metadata
        .origins
        .iter()
        .map(|origin| origin.cell.unwrap())
        .collect();
    // A store with a resolution of seconds does not know which was first.
    cells.sort_unstable();
    assert_eq!(cells, [1, 2]);
    assert_eq!(metadata.origins[0].session, "s é/..");
}

async fn what_is_not_there_is_an_error(store: &Store) {
    let id = ArtifactId::of(b"absent");
    assert!(matches!(store.get(id).await, Err(ArtifactError::NotFound { .. })));
    assert!(matches!(
        store.reader(id).await,
        Err(ArtifactError::NotFound { .. })
    ));
    assert!(matches!(
        store.metadata(id).await,
        Err(ArtifactError::NotFound { .. })
    ));
    assert!(matches!(
        store.pin("a", [id]).await,
        Err(ArtifactError::NotFound { .. })
    ));
    assert!(!store.exists(id).await.unwrap());
    assert!(!store.remove(id).await.unwrap());
    assert_eq!(store.owners().await.unwrap(), []);
    assert_eq!(store.unpin("a").await.unwrap(), 0);
    assert_eq!(store.collect(&ALL, |_| false).await.unwrap().artifacts, 0);
}

async fn removed_artifacts_are_gone(store: &Store) {
    let id = store.put("x", &about(1)).await.unwrap();
    let kept = store.put("y", &about(1)).await.unwrap();
    assert!(store.remove(id).await.unwrap());
    assert!(!store.exists(id).await.unwrap());
    assert!(matches!(
        store.metadata(id).await,
        Err(ArtifactError::NotFound { .. })
    ));
    assert_eq!(store.list().await.unwrap(), [kept]);
    assert_eq!(store.put("x", &about(2)).await.unwrap(), id);
    assert_eq!(
        store.metadata(id).await.unwrap().origins,
        [about(2).origin.unwrap()]
    );
}

async fn pinned_and_young_artifacts_are_not_collected(store: &Store) {
    let mut ids = Vec::new();
    for n in 0..70 {
        ids.push(store.put(format!("artifact {n}"), &about(n)).await.unwrap());
    }
    store.pin("a", [ids[0], ids[1]]).await.unwrap();
    store.pin("b.2", [ids[1]]).await.unwrap();
    let owners = store.owners().await.unwrap();
    let named: Vec<_> = owners
        .iter()
        .map(|owner| (owner.name.as_str(), owner.pins.len()))
        .collect();
    assert_eq!(named, [("a", 2), ("b.2", 1)]);
    assert_eq!(store.collect(&YOUNG, |_| false).await.unwrap().artifacts, 0);
    let collected = store.collect(&ALL, |id| id == ids[2]).await.unwrap();
    assert_eq!((collected.artifacts, collected.kept), (67, 3));
    assert_eq!(store.unpin("a").await.unwrap(), 2);
    assert_eq!(store.collect(&ALL, |_| false).await.unwrap().artifacts, 2);
    assert_eq!(store.list().await.unwrap(), [ids[1]]);
    assert_eq!(store.get(ids[1]).await.unwrap(), "artifact 1");
}

async fn publishers_need_no_lock(store: &Store) {
    let mut tasks = JoinSet::new();
    for cell in 0..32_u64 {
        let store = store.clone();
        tasks.spawn(async move {
            let text = format!("bytes {}", cell % 4).repeat(10_000);
            match cell % 2 {
                0 => store.put(text, &about(cell)).await.unwrap(),
                _ => store.put_file(file(text.as_bytes()), &about(cell)).await.unwrap(),
            }
        });
    }
    for id in tasks.join_all().await {
        assert_eq!(ArtifactId::of(&store.get(id).await.unwrap()), id);
        assert_eq!(store.metadata(id).await.unwrap().origins.len(), 8);
    }
    assert_eq!(store.list().await.unwrap().len(), 4);
}

/// A collection without retention may remove everything published before, except pinned artifacts.
async fn publishers_and_collectors_need_no_lock(store: &Store) {
    let mut tasks = JoinSet::new();
    for n in 0..8_u64 {
        let store = store.clone();
        tasks.spawn(async move {
            if n < 2 {
                for _ in 0..3 {
                    store.collect(&ALL, |_| false).await.unwrap();
                }
                return None;
            }
            loop {
                let id = store.put(format!("artifact {}", n % 3), &about(n)).await.unwrap();
                match store.pin(&format!("owner-{n}"), [id]).await {
                    Ok(()) => return Some(id),
                    Err(ArtifactError::NotFound { .. }) => {}
                    Err(error) => panic!("{error:?}"),
                }
            }
        });
    }
    for id in tasks.join_all().await.into_iter().flatten() {
        assert_eq!(ArtifactId::of(&store.get(id).await.unwrap()), id);
    }
    assert_eq!(store.list().await.unwrap().len(), 3);
}
