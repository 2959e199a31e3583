//! The probes once more for a user without privileges, whose sandboxes have no cgroups and no user
//! id of their own.
//!
//! The test runs itself again as that user. Exhaustion is left out: without cgroups, most of its
//! limits are those of single processes.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use cellblock_testkit::{ORDINARY_UID, as_ordinary_user, require};

use crate::contained;
use crate::probe::{self, folder};
use crate::support::{block_on, image};

/// Set in the second run.
const AGAIN: &str = "CELLBLOCK_TEST_ORDINARY";
const NAME: &str = "ordinary::no_probe_reaches_anything_from_a_sandbox_of_an_ordinary_user";

#[test]
fn no_probe_reaches_anything_from_a_sandbox_of_an_ordinary_user() {
    if std::env::var_os(AGAIN).is_some() {
        let mut probes = probe::chosen();
        probes.retain(|probe| probe.ordinary.is_none() && probe.group != "exhaustion");
        let complaints = block_on(contained::run(probes));
        assert!(complaints.is_empty(), "{}", complaints.join("\n"));
        return;
    }
    require!(OrdinaryUser);
    again(NAME, &as_ordinary_user, &[AGAIN]);
}

/// Runs a test of this binary again, as what starts it says and with these variables set, with
/// copies of what lies below folders that others may be kept out of.
pub(crate) fn again(name: &str, starting: &dyn Fn(PathBuf) -> Command, set: &[&str]) {
    let image = block_on(image());
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name);
    open_to_all(scratch.path());
    fs::copy(std::env::current_exe().unwrap(), at("test")).unwrap();
    copy(&folder(), &at("probes"));
    let home = image.home().root();
    fs::create_dir(at("home")).unwrap();
    for entry in fs::read_dir(home).unwrap() {
        let name = entry.unwrap().file_name();
        match name.to_str() {
            Some("refs") => copy(&home.join(&name), &at("home/refs")),
            // Whoever runs the test makes it: it must be its user's own.
            Some("rooms") => {}
            _ => fs::create_dir(at("home").join(&name)).unwrap(),
        }
    }
    symlink(image.root(), at("home/images").join(image.id())).unwrap();
    fs::create_dir(at("store")).unwrap();
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
    let output = starting(at("test"))
        .args(["--exact", name, "--nocapture"])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .envs(set.iter().map(|name| (name, "1")))
        .env("CELLBLOCK_HOME", at("home"))
        .env("CELLBLOCK_TEST_PROBES", at("probes"))
        .env("CELLBLOCK_TEST_STORE", at("store"))
        .env(
            "CELLBLOCK_PROBES",
            std::env::var("CELLBLOCK_PROBES").unwrap_or_default(),
        )
        .output()
        .unwrap();
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    let _ = std::io::Write::write_all(&mut std::io::stderr(), &output.stderr);
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-R").args([from, to]).status().unwrap();
    assert!(copied.success());
}

fn open_to_all(folder: &Path) {
    fs::set_permissions(folder, PermissionsExt::from_mode(0o755)).unwrap();
}
