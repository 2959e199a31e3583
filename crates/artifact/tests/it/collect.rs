//! Collection: referenced and new artifacts stay, others are removed, and a crash breaks nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cellblock_artifact::{
    ArtifactDescription, ArtifactError, ArtifactId, CollectionReport, Kind, Origin, Retention, Store,
};
use cellblock_testkit::wait::until;
use object_store::memory::InMemory;
use proptest::prelude::*;
use tempfile::TempDir;

const HOUR: Duration = Duration::from_hours(1);
const OLD: Retention = Retention {
    keep: HOUR,
    pins: None,
};
const ALL: Retention = Retention {
    keep: Duration::ZERO,
    pins: None,
};

fn about() -> ArtifactDescription {
    ArtifactDescription {
        kind: Kind::File,
        media_type: "text/plain".into(),
        origin: Some(Origin {
            session: "s".into(),
            ..Origin::default()
        }),
    }
}

struct Local {
    folder: TempDir,
    store: Store,
}

impl Local {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let store = Store::local(folder.path()).unwrap();
        Self { folder, store }
    }

    fn path(&self, below: &str, id: ArtifactId, extension: &str) -> PathBuf {
        let digits = id.to_string();
        let name = format!("{}{extension}", &digits[2..]);
        self.folder.path().join(below).join(&digits[..2]).join(name)
    }

    fn object(&self, id: ArtifactId) -> PathBuf {
        self.path("objects", id, "")
    }

    fn sidecar(&self, id: ArtifactId) -> PathBuf {
        self.path("metadata", id, ".json")
    }

    /// Makes an artifact look as if it had been published two hours ago.
    fn age(&self, id: ArtifactId) {
        set_old(&self.object(id));
        set_old(&self.sidecar(id));
    }

    fn files(&self) -> Vec<String> {
        let mut found = Vec::new();
        walk(self.folder.path(), &mut found);
        let below = |path: &PathBuf| {
            path.strip_prefix(self.folder.path())
                .unwrap()
                .display()
                .to_string()
        };
        found.iter().map(below).collect()
    }
}

fn set_old(path: &Path) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - 2 * HOUR).unwrap();
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[tokio::test]
async fn old_artifacts_without_references_are_removed_and_counted() {
    let at = Local::new();
    let mut ids = Vec::new();
    for text in ["old", "pinned", "referenced", "young", "olden"] {
        ids.push(at.store.put(text, &about()).await.unwrap());
    }
    let [old, pinned, referenced, young, olden] = ids[..] else {
        unreachable!()
    };
    for id in [old, pinned, referenced, olden] {
        at.age(id);
    }
    at.store.pin("turn-1", [pinned]).await.unwrap();
    let collected = at.store.collect(&OLD, |id| id == referenced).await.unwrap();
    assert_eq!(
        collected,
        CollectionReport {
            artifacts: 2,
            bytes: 8,
            kept: 3,
            references: 0
        }
    );
    let mut kept = [pinned, referenced, young];
    kept.sort_unstable();
    assert_eq!(at.store.list().await.unwrap(), kept);
    // An object, a sidecar and an origin of each, and one reference; no marks.
    assert_eq!(at.files().len(), 10, "{:?}", at.files());
    assert!(!at.path("origins", old, "").exists());

    assert_eq!(at.store.unpin("turn-1").await.unwrap(), 1);
    assert_eq!(at.store.unpin("turn-1").await.unwrap(), 0);
    assert_eq!(at.store.collect(&OLD, |_| false).await.unwrap().artifacts, 2);
    assert_eq!(at.store.collect(&ALL, |_| false).await.unwrap().artifacts, 1);
    assert_eq!(at.files(), Vec::<String>::new());
}

#[tokio::test]
async fn publishing_equal_bytes_makes_an_artifact_new_again() {
    let at = Local::new();
    let id = at.store.put("x", &about()).await.unwrap();
    let sidecar = fs::read(at.sidecar(id)).unwrap();
    at.age(id);
    at.store.put("x", &about()).await.unwrap();
    assert_eq!(at.store.collect(&OLD, |_| false).await.unwrap().artifacts, 0);
    at.age(id);
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"x").unwrap();
    at.store.put_file(file, &about()).await.unwrap();
    assert_eq!(at.store.collect(&OLD, |_| false).await.unwrap().artifacts, 0);
    assert_eq!(fs::read(at.sidecar(id)).unwrap(), sidecar);
    at.age(id);
    assert_eq!(at.store.collect(&OLD, |_| false).await.unwrap().artifacts, 1);
}

#[tokio::test]
async fn a_shared_artifact_stays_until_its_last_owner_unpins_it() {
    for store in [Local::new().store, Store::new(Arc::new(InMemory::new()))] {
        let _folder = TempDir::new().unwrap();
        let id = store.put("x", &about()).await.unwrap();
        let other = store.put("y", &about()).await.unwrap();
        store.pin("a", [id, other]).await.unwrap();
        store.pin("b", [id]).await.unwrap();
        let owners = store.owners().await.unwrap();
        let named: Vec<_> = owners
            .iter()
            .map(|owner| (owner.name.as_str(), owner.pins.len()))
            .collect();
        assert_eq!(named, [("a", 2), ("b", 1)]);
        // The other one is not pinned by this owner.
        store.unpin_some("b", [other]).await.unwrap();
        assert_eq!(store.collect(&ALL, |_| false).await.unwrap().artifacts, 0);
        store.unpin_some("a", [other]).await.unwrap();
        assert_eq!(store.collect(&ALL, |_| false).await.unwrap().artifacts, 1);
        assert_eq!(store.list().await.unwrap(), [id]);
        assert_eq!(store.unpin("a").await.unwrap(), 1);
        assert_eq!(store.collect(&ALL, |_| false).await.unwrap().artifacts, 0);
        store.unpin("b").await.unwrap();
        assert_eq!(store.collect(&ALL, |_| false).await.unwrap().artifacts, 1);
    }
}

#[tokio::test]
async fn references_of_a_dead_owner_expire() {
    let at = Local::new();
    let id = at.store.put("x", &about()).await.unwrap();
    let other = at.store.put("y", &about()).await.unwrap();
    at.store.pin("dead", [id]).await.unwrap();
    at.store.pin("alive", [id, other]).await.unwrap();
    for owner in ["dead", "alive"] {
        set_old(&at.folder.path().join(format!("references/{owner}/{id}")));
    }
    let retention = Retention {
        keep: HOUR,
        pins: Some(HOUR),
    };
    let collected = at.store.collect(&retention, |_| false).await.unwrap();
    assert_eq!((collected.references, collected.kept), (1, 2));
    let owners = at.store.owners().await.unwrap();
    assert_eq!(owners.len(), 1);
    assert_eq!((owners[0].name.as_str(), owners[0].pins.len()), ("alive", 2));
}

#[tokio::test]
async fn missing_artifacts_and_invalid_owners_are_rejected() {
    let at = Local::new();
    let absent = ArtifactId::of(b"absent");
    let error = at.store.pin("a", [absent]).await.unwrap_err();
    assert!(
        matches!(error, ArtifactError::NotFound { id } if id == absent),
        "{error}"
    );
    assert_eq!(at.store.owners().await.unwrap(), []);
    for owner in ["", ".", "..", "a/b", "-a", "é", "a b", &"a".repeat(129)] {
        let error = at.store.pin(owner, []).await.unwrap_err();
        assert!(
            error
                .to_string()
                .contains("cannot own references: expected at most 128 ASCII letters"),
            "{error}"
        );
        assert!(at.store.unpin(owner).await.is_err());
    }
}

/// The files of one artifact, in the order in which they are removed.
fn removal(at: &Local, id: ArtifactId) -> Vec<PathBuf> {
    let mut origins = Vec::new();
    walk(&at.path("origins", id, ""), &mut origins);
    origins.extend([at.sidecar(id), at.object(id)]);
    origins
}

#[tokio::test]
async fn a_collector_can_die_at_any_step() {
    let steps = 3;
    for step in 0..=steps {
        for again in [false, true] {
            let at = Local::new();
            let id = at.store.put("x", &about()).await.unwrap();
            at.age(id);
            let marks = at.folder.path().join("collecting");
            fs::create_dir(&marks).unwrap();
            fs::write(marks.join(id.to_string()), "").unwrap();
            set_old(&marks.join(id.to_string()));
            let files = removal(&at, id);
            assert_eq!(files.len(), steps);
            for file in &files[..step] {
                fs::remove_file(file).unwrap();
            }
            // Its metadata can be read only as long as its bytes can.
            if at.store.metadata(id).await.is_ok() {
                assert_eq!(at.store.get(id).await.unwrap(), "x");
            }
            if at.store.exists(id).await.unwrap() {
                assert_eq!(at.store.get(id).await.unwrap(), "x");
                assert_eq!(at.store.list().await.unwrap(), [id]);
            } else {
                assert!(matches!(
                    at.store.get(id).await,
                    Err(ArtifactError::NotFound { .. })
                ));
                assert_eq!(at.store.list().await.unwrap(), []);
            }
            if again {
                assert_eq!(at.store.put("x", &about()).await.unwrap(), id);
                assert_eq!(at.store.get(id).await.unwrap(), "x");
                assert_eq!(at.store.metadata(id).await.unwrap().origins.len(), 1);
                at.age(id);
            }
            at.store.collect(&OLD, |_| false).await.unwrap();
            assert_eq!(at.files(), Vec::<String>::new(), "step {step}, again: {again}");
        }
    }
}

#[tokio::test]
async fn a_publisher_waits_for_a_live_collector_but_not_for_a_dead_one() {
    let at = Local::new();
    let id = ArtifactId::of(b"x");
    let mark = at.folder.path().join("collecting").join(id.to_string());
    fs::create_dir(mark.parent().unwrap()).unwrap();
    fs::write(&mark, "").unwrap();
    let store = at.store.clone();
    let publishing = tokio::spawn(async move { store.put("x", &about()).await });
    until("written", || at.sidecar(id).exists()).await;
    // The collector removes the artifact that was just written, and is done.
    fs::remove_file(at.object(id)).unwrap();
    fs::remove_file(&mark).unwrap();
    assert_eq!(publishing.await.unwrap().unwrap(), id);
    assert_eq!(at.store.get(id).await.unwrap(), "x");

    fs::write(&mark, "").unwrap();
    set_old(&mark);
    at.store.put("x", &about()).await.unwrap();
    assert!(!mark.exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn artifacts_published_or_pinned_during_collections_exist() {
    let at = Local::new();
    for round in 0..60 {
        let ids: Vec<_> = (0..6)
            .map(|n| ArtifactId::of(format!("artifact {n}").as_bytes()))
            .collect();
        for (n, id) in ids.iter().enumerate() {
            at.store.put(format!("artifact {n}"), &about()).await.unwrap();
            at.age(*id);
        }
        let mut tasks = tokio::task::JoinSet::new();
        for collector in 0..2 {
            let store = at.store.clone();
            tasks.spawn(async move {
                store.collect(&OLD, |_| false).await.unwrap();
                (collector, None)
            });
        }
        for (n, id) in ids.iter().copied().enumerate() {
            let store = at.store.clone();
            tasks.spawn(async move {
                if n % 2 == 0 {
                    store.put(format!("artifact {n}"), &about()).await.unwrap();
                    return (n, Some(id));
                }
                // It may come too late, but it never reports success wrongly.
                (n, store.pin("owner", [id]).await.is_ok().then_some(id))
            });
        }
        for (n, kept) in tasks.join_all().await {
            if let Some(id) = kept {
                let text = at.store.get(id).await;
                assert_eq!(text.unwrap(), format!("artifact {n}"), "round {round}");
                let described = at.store.metadata(id).await;
                assert!(described.is_ok(), "round {round}, artifact {n}: {described:?}");
            }
        }
        at.store.unpin("owner").await.unwrap();
    }
}

#[derive(Debug, Clone)]
enum StoreAction {
    Put(u8),
    Age(u8),
    Pin(u8, u8),
    Unpin(u8),
    Collect(BTreeSet<u8>),
}

fn acts() -> impl Strategy<Value = StoreAction> {
    let artifact = || 0..5_u8;
    prop_oneof![
        3 => artifact().prop_map(StoreAction::Put),
        3 => artifact().prop_map(StoreAction::Age),
        2 => (0..2_u8, artifact()).prop_map(|(owner, artifact)| StoreAction::Pin(owner, artifact)),
        1 => (0..2_u8).prop_map(StoreAction::Unpin),
        2 => prop::collection::btree_set(artifact(), 0..3).prop_map(StoreAction::Collect),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_store_keeps_the_same_artifacts_as_the_model(acts in prop::collection::vec(acts(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let at = Local::new();
            let id = |n: u8| ArtifactId::of(&[n]);
            // For each artifact, whether it is old; and the pins of each owner.
            let mut here: BTreeMap<u8, bool> = BTreeMap::new();
            let mut pins: BTreeSet<(u8, u8)> = BTreeSet::new();
            for act in acts {
                match act {
                    StoreAction::Put(n) => {
                        at.store.put(vec![n], &about()).await.unwrap();
                        here.insert(n, false);
                    }
                    StoreAction::Age(n) if here.contains_key(&n) => {
                        at.age(id(n));
                        here.insert(n, true);
                    }
                    StoreAction::Age(_) => {}
                    StoreAction::Pin(owner, n) => {
                        let pinned = at.store.pin(&format!("owner-{owner}"), [id(n)]).await;
                        prop_assert_eq!(pinned.is_ok(), here.contains_key(&n));
                        if pinned.is_ok() {
                            pins.insert((owner, n));
                        }
                    }
                    StoreAction::Unpin(owner) => {
                        let count = pins.iter().filter(|(of, _)| *of == owner).count();
                        prop_assert_eq!(at.store.unpin(&format!("owner-{owner}")).await.unwrap(),
                            count as u64);
                        pins.retain(|(of, _)| *of != owner);
                    }
                    StoreAction::Collect(referenced) => {
                        let before = here.len();
                        here.retain(|n, old| !*old || referenced.contains(n) || pins.iter().any(|(_,
                            of)| of == n));
                        let referenced: Vec<_> = referenced.iter().map(|n| id(*n)).collect();
                        let collected = at.store.collect(&OLD, |id| referenced.contains(&id)).await.unwrap();
                        let removed = (before - here.len()) as u64;
                        prop_assert_eq!((collected.artifacts, collected.bytes), (removed, removed));
                        prop_assert_eq!(collected.kept, here.len() as u64);
                    }
                }
                let mut expected: Vec<_> = here.keys().map(|n| id(*n)).collect();
                expected.sort_unstable();
                prop_assert_eq!(at.store.list().await.unwrap(), expected);
                for n in here.keys() {
                    prop_assert_eq!(at.store.get(id(*n)).await.unwrap(), vec![*n]);
                    prop_assert!(at.store.metadata(id(*n)).await.is_ok());
                }
            }
            Ok(())
        })?;
    }
}
