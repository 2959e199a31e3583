//! Snapshots that are damaged, before and after a backend has started.

use std::fs;
use std::path::{Path, PathBuf};

use cellblock_sandbox::Limits;
use cellblock_sandbox::pool::create;
use cellblock_testkit::require;
use cellblock_walls::gvisor;

use crate::support::{block_on, config, execute, image_in, shows};

fn pages(home: &Path) -> PathBuf {
    let snapshots = fs::read_dir(home.join("snapshots")).unwrap().flatten();
    let made: Vec<_> = snapshots
        .map(|entry| entry.path().join("pages.img"))
        .filter(|path| path.exists())
        .collect();
    assert_eq!(made.len(), 1, "{made:?}");
    made.into_iter().next().unwrap()
}

async fn works(home: &Path) {
    let backend = gvisor::start(config(image_in(home).await)).await.unwrap();
    let mut lease = create(&backend, &Limits::default()).await.unwrap();
    assert_eq!(execute(&mut lease.kernel, "6 * 7").await, shows(42));
    lease.sandbox.destroy().await.unwrap();
}

#[test]
fn a_truncated_or_altered_snapshot_is_made_again() {
    require!(Runsc);
    block_on(async {
        let home = tempfile::tempdir().unwrap();
        works(home.path()).await;
        let size = fs::metadata(pages(home.path())).unwrap().len();
        fs::OpenOptions::new()
            .write(true)
            .open(pages(home.path()))
            .unwrap()
            .set_len(size / 2)
            .unwrap();
        works(home.path()).await;
        assert!(fs::metadata(pages(home.path())).unwrap().len() > size / 2);
        // Damaged after the start has checked it.
        let backend = gvisor::start(config(image_in(home.path()).await)).await.unwrap();
        let first = create(&backend, &Limits::default()).await.unwrap();
        fs::write(pages(home.path()).with_file_name("checkpoint.img"), "garbage").unwrap();
        let mut second = create(&backend, &Limits::default()).await.unwrap();
        assert_eq!(execute(&mut second.kernel, "6 * 7").await, shows(42));
        first.sandbox.destroy().await.unwrap();
        second.sandbox.destroy().await.unwrap();
    });
}
