//! A QEMU that fails after the template was made: errors say why, and nothing is left.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use cellblock_testkit::wait::until;
use cellblock_testkit::{LeakOwner, require};
use cellblock_walls::microvm;
use serde_json::{Value, json};

use crate::full_disk::SmallDisk;
use crate::lean_image::with_preload;
use crate::support::{block_on, image, with_qemu};

/// Starts a backend with a program that behaves like this, which fails; returns the error.
async fn failure(folder: &Path, home: &Path, behavior: &Value) -> String {
    let qemu = folder.join("qemu");
    fs::write(&qemu, include_str!("fake.py")).unwrap();
    fs::set_permissions(&qemu, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(folder.join("behavior.json"), behavior.to_string()).unwrap();
    let kernel = folder.join("vmlinux");
    fs::write(&kernel, b"\x7fELF and nothing more").unwrap();
    let mut config = with_qemu(with_preload(&image().await, home, &[]), qemu.clone());
    config.options.microvm.kernel = Some(kernel);
    config.options.restore_timeout = Some(Duration::from_secs(2));
    let error = microvm::start(config).await.unwrap_err().to_string();
    until("nothing of the machines is left", || {
        let processes = LeakOwner::this_process().processes();
        let running = processes.iter().any(|(pid, _)| {
            let words = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            words.contains(qemu.to_str().unwrap())
        });
        !running && fs::read_dir(home.join("microvm")).unwrap().count() == 0
    })
    .await;
    let snapshots = fs::read_dir(home.join("snapshots")).unwrap().flatten();
    let mut names = snapshots.map(|entry| entry.file_name().to_string_lossy().into_owned());
    assert!(!names.any(|name| name.contains("staging")));
    error
}

#[test]
fn a_machine_that_never_answers_is_an_error_within_the_limit() {
    block_on(async {
        for (behavior, expected) in [
            (json!({"absent": true}), "the machine did not connect within 2 s"),
            (json!({"deaf": true}), "QEMU did not answer within 2 s"),
            // It is restored, and nothing in it answers.
            (json!({}), "a restored machine was not ready within 2"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let error = failure(folder.path(), &folder.path().join("home"), &behavior).await;
            assert!(error.contains(expected), "{error}");
        }
    });
}

#[test]
fn a_program_that_is_killed_between_restore_and_hello_is_an_error() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let error = failure(folder.path(), &folder.path().join("home"), &json!({"dies": true})).await;
        assert!(error.contains("restored machine"), "{error}");
    });
}

#[test]
fn a_disk_that_is_full_while_the_snapshot_is_written_is_an_error_that_says_so() {
    require!(Root);
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        let _mounted = SmallDisk::new(&home, 1 << 30);
        let error = failure(folder.path(), &home, &json!({"full": true})).await;
        assert!(error.contains("MiB free: remove files there"), "{error}");
    });
}
