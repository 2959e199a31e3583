//! Programs and kernels that are not used.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cellblock_sandbox::error::Blame;
use cellblock_testkit::require;
use cellblock_walls::microvm;

use crate::support::{block_on, config, image_in, with_qemu};

/// A program that pretends to be QEMU.
fn script(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("qemu");
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn a_missing_and_an_old_qemu_are_errors_that_say_what_to_install() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let image = image_in(&folder.path().join("home")).await;
        for (text, expected) in [
            (None, "cannot run `"),
            (Some("exit 1"), "does not print a version"),
            (
                Some("echo 'QEMU emulator version 7.2.22 (Debian)'"),
                "has the version 7.2.22, which is too old",
            ),
        ] {
            let qemu = match text {
                Some(text) => script(folder.path(), text),
                None => folder.path().join("nowhere/qemu"),
            };
            let error = microvm::start(with_qemu(image.clone(), qemu)).await.unwrap_err();
            assert_eq!(error.blame(), Blame::Policy, "{error}");
            let error = error.to_string();
            assert!(error.contains(expected), "{error}");
            assert!(error.contains("install QEMU 8.2 or newer"), "{error}");
        }
    });
}

#[test]
fn a_missing_kernel_and_a_machine_that_does_not_start_are_errors() {
    require!(Qemu);
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let image = image_in(&folder.path().join("home")).await;
        let mut missing = config(image.clone());
        missing.options.microvm.kernel = Some("/nowhere/vmlinuz".into());
        let error = microvm::start(missing).await.unwrap_err().to_string();
        assert!(
            error.contains("the kernel `/nowhere/vmlinuz` is not a file"),
            "{error}"
        );
        let broken = script(
            folder.path(),
            "[ \"$1\" = --version ] && echo 'QEMU emulator version 10.0.2' && exit\n\
             echo 'no such machine' >&2\nexit 1",
        );
        let error = microvm::start(with_qemu(image, broken))
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("the machine ended: no such machine"), "{error}");
        let left = fs::read_dir(folder.path().join("home/snapshots"))
            .unwrap()
            .flatten();
        let left: Vec<_> = left.filter(|entry| entry.path().is_dir()).collect();
        assert!(left.is_empty(), "{left:?}");
    });
}
