//! Machines of a user without privileges.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use cellblock_testkit::{ORDINARY_UID, as_ordinary_user, binary, require, target_dir};

use crate::support::{block_on, image, share_snapshot};

/// Gives the directories of a tree to the ordinary user. The files stay root's, because they are links to those of other homes.
fn give(directory: &Path) {
    chown(directory, Some(ORDINARY_UID), Some(ORDINARY_UID)).unwrap();
    for entry in fs::read_dir(directory).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() && entry.file_name() != "images" {
            give(&entry.path());
        }
    }
}

#[test]
fn an_ordinary_user_runs_cells_in_a_machine_and_leaves_nothing() {
    require!(Qemu);
    require!(Root);
    require!(OrdinaryUser);
    let folder = tempfile::tempdir_in(target_dir()).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let home = folder.path().join("home");
    block_on(async {
        let image = image().await;
        fs::create_dir_all(home.join("images")).unwrap();
        let linked = Command::new("cp")
            .args(["--archive", "--link"])
            .arg(image.root())
            .arg(home.join("images"))
            .status();
        assert!(linked.unwrap().success());
        share_snapshot(&home).await;
    });
    give(&home);
    let code = "import os\nprint(6 * 7, open('/proc/version').read().split()[2])";
    let output = as_ordinary_user(binary().unwrap())
        .args(["run", "--backend", "microvm", "--emulation", "--code", code])
        .env("CELLBLOCK_HOME", &home)
        .output()
        .unwrap();
    let (shown, errors) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success() && shown.starts_with("42 "),
        "{shown}{errors}"
    );
    let here = rustix::system::uname();
    assert!(!shown.contains(&*here.release().to_string_lossy()), "{shown}");
    let made = fs::read_dir(home.join("snapshots")).unwrap().flatten();
    let made: Vec<_> = made.filter(|entry| entry.path().is_dir()).collect();
    assert!(
        made.iter()
            .all(|entry| fs::metadata(entry.path().join("memory")).is_ok()),
        "{made:?}"
    );
    assert_eq!(fs::read_dir(home.join("microvm")).unwrap().count(), 0);
}
