//! Programs that are not used.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cellblock_sandbox::error::Blame;
use cellblock_walls::gvisor;

use crate::support::{block_on, image_in, with_runsc};

/// A program that pretends to be `runsc`.
fn script(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("runsc");
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn a_missing_an_old_and_a_crashing_runsc_are_errors_that_say_what_to_install() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let image = image_in(&folder.path().join("home")).await;
        let version = "[ \"$1\" = --version ] && echo 'runsc version release-20240729.0'";
        for (text, expected) in [
            (None, "cannot run `"),
            (Some("exit 1".to_owned()), "does not print a version"),
            (
                Some("echo 'runsc version 0.0~20221219.0'".to_owned()),
                "has the version `0.0~20221219.0`, whose snapshots are not supported",
            ),
            (
                Some(format!(
                    "{version} && exit\ncount={0}/count\necho >>$count\n\
                     [ $(wc -l <$count) -lt 3 ] && echo works && exit\n\
                     echo 'panic: running on goroutine 1 (task goroutine for kernel.Task is 0)' >&2\n\
                     exit 2",
                    folder.path().display()
                )),
                "failed in start 3 of 5 of an empty machine: exit status: 2: panic: running on goroutine",
            ),
        ] {
            let runsc = match text {
                Some(text) => script(folder.path(), &text),
                None => folder.path().join("nowhere/runsc"),
            };
            let error = gvisor::start(with_runsc(image.clone(), runsc)).await.unwrap_err();
            assert_eq!(error.blame(), Blame::Policy, "{error}");
            let error = error.to_string();
            assert!(error.contains(expected), "{error}");
            assert!(error.contains("install gVisor 20240729 or newer"), "{error}");
        }
    });
}
