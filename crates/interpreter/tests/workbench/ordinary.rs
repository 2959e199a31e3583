//! Datasets and commands once more for a user without privileges. The tests run again as that user.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use cellblock_image::{DEFAULT_IMAGE, Home, Sink};
use cellblock_testkit::{ORDINARY_UID, as_ordinary_user, require};

use crate::support::block_on;

/// Set in the second run.
const AGAIN: &str = "CELLBLOCK_TEST_ORDINARY";
/// Groups of tests that run again.
const GROUPS: [&str; 2] = ["datasets::", "exec::at_its_deadline"];

#[test]
fn an_ordinary_user_has_the_same_datasets_and_deadlines() {
    require!(OrdinaryUser);
    if std::env::var_os(AGAIN).is_some() {
        return;
    }
    let home = Home::at(&cellblock_testkit::home().unwrap()).unwrap();
    let images = cellblock_image::ImageStore::new(home);
    let image = block_on(images.open(DEFAULT_IMAGE, Sink::new(|_| {}))).unwrap();
    // Copies of what lies below folders that others may be kept out of.
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name);
    fs::set_permissions(scratch.path(), PermissionsExt::from_mode(0o755)).unwrap();
    fs::copy(std::env::current_exe().unwrap(), at("test")).unwrap();
    for folder in ["home", "home/images", "home/locks", "home/layers", "store"] {
        fs::create_dir(at(folder)).unwrap();
    }
    copy(&images.home().root().join("refs"), &at("home/refs"));
    symlink(image.root(), at("home/images").join(image.id())).unwrap();
    let given = Command::new("chown")
        .args([
            "-R",
            "--no-dereference",
            &format!("{ORDINARY_UID}:{ORDINARY_UID}"),
        ])
        .args([at("home"), at("store")])
        .status()
        .unwrap();
    assert!(given.success());
    let output = as_ordinary_user(at("test"))
        .args(GROUPS)
        .arg("--test-threads=2")
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env(AGAIN, "1")
        .env("CELLBLOCK_HOME", at("home"))
        .env("CELLBLOCK_TEST_STORE", at("store"))
        .output()
        .unwrap();
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success() && said.contains("11 passed"), "{said}");
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-R").args([from, to]).status().unwrap();
    assert!(copied.success());
}
