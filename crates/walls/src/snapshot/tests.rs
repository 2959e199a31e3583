//! Snapshots that are missing, damaged, replaced or made twice at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

fn facts(kernel: &str) -> Facts {
    Facts(BTreeMap::new())
        .with("backend", "test")
        .with("image", "i")
        .with("kernel", kernel)
}

async fn write(directory: PathBuf, content: &str) -> Result<()> {
    tokio::fs::write(directory.join("memory"), content).await.unwrap();
    Ok(())
}

fn content(snapshot: &Snapshot) -> String {
    fs::read_to_string(snapshot.path().join("memory")).unwrap()
}

#[tokio::test]
async fn a_snapshot_is_made_once_and_a_damaged_one_again() {
    let home = tempfile::tempdir().unwrap();
    let store = SnapshotStore::below(home.path());
    let first = store
        .find_or_make(&facts("1"), |at| write(at, "one"))
        .await
        .unwrap();
    let again = store
        .find_or_make(&facts("1"), |at| write(at, "two"))
        .await
        .unwrap();
    assert_eq!((content(&first), content(&again)), ("one".into(), "one".into()));
    let found = fs::metadata(first.path()).unwrap();
    assert_eq!(found.mode() & 0o777, 0o700);
    for damage in ["on", "onf", "one and more", ""] {
        fs::write(first.path().join("memory"), damage).unwrap();
        let made = store
            .find_or_make(&facts("1"), |at| write(at, "one"))
            .await
            .unwrap();
        assert_eq!(content(&made), "one");
    }
    fs::remove_file(first.path().join(MANIFEST)).unwrap();
    let made = store
        .find_or_make(&facts("1"), |at| write(at, "new"))
        .await
        .unwrap();
    assert_eq!(content(&made), "new");
}

#[tokio::test]
async fn a_failed_one_leaves_nothing_and_its_error_is_returned() {
    let home = tempfile::tempdir().unwrap();
    let store = SnapshotStore::below(home.path());
    let failing = |at: PathBuf| async move {
        write(at, "half").await?;
        Err(Error::gone("template"))
    };
    let error = store.find_or_make(&facts("1"), failing).await.unwrap_err();
    assert_eq!(error.to_string(), "the template is gone");
    assert_eq!(store.entries(|name| !name.contains('.')), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn an_unusable_one_is_made_again_by_only_one_process() {
    let home = tempfile::tempdir().unwrap();
    let store = SnapshotStore::below(home.path());
    let broken = store
        .find_or_make(&facts("1"), |at| write(at, "bad"))
        .await
        .unwrap();
    let made = store
        .remake(&facts("1"), &broken, |at| write(at, "good"))
        .await
        .unwrap();
    let seen = store
        .remake(&facts("1"), &broken, |at| write(at, "third"))
        .await
        .unwrap();
    assert_eq!((content(&made), content(&seen)), ("good".into(), "good".into()));
}

#[tokio::test]
async fn other_facts_have_another_snapshot_and_the_old_one_goes_when_it_is_unused() {
    let home = tempfile::tempdir().unwrap();
    let store = SnapshotStore::below(home.path());
    let old = store
        .find_or_make(&facts("1"), |at| write(at, "old"))
        .await
        .unwrap();
    let new = store
        .find_or_make(&facts("2"), |at| write(at, "new"))
        .await
        .unwrap();
    assert_eq!((content(&old), content(&new)), ("old".into(), "new".into()));
    let path = old.path().to_owned();
    drop(old);
    let newer = store
        .find_or_make(&facts("3"), |at| write(at, "newer"))
        .await
        .unwrap();
    assert!(!path.exists());
    assert!(new.path().exists() && newer.path().exists());
}

#[tokio::test]
async fn two_that_start_at_once_make_one() {
    let home = tempfile::tempdir().unwrap();
    let store = SnapshotStore::below(home.path());
    let made = Arc::new(AtomicUsize::new(0));
    let one = || {
        let (store, made) = (store.clone(), Arc::clone(&made));
        tokio::spawn(async move {
            let slowly = |at: PathBuf| async move {
                made.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                write(at, "one").await
            };
            store
                .find_or_make(&facts("1"), slowly)
                .await
                .map(|found| content(&found))
        })
    };
    let (first, second) = (one(), one());
    assert_eq!(first.await.unwrap().unwrap(), "one");
    assert_eq!(second.await.unwrap().unwrap(), "one");
    assert_eq!(made.load(Ordering::Relaxed), 1);
}
