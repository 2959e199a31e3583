//! `cellblock image`.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use cellblock_testkit::{Cli, target_dir};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{BUILD_LIMIT, export_to_mirror, folder, small_image};

#[test]
fn a_built_image_is_listed_inspected_and_audited() -> Result<()> {
    small_image()?;
    let listed = Cli::new(["image", "list", "--json"]).run()?.json()?;
    let names: Vec<_> = listed["images"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|image| image["name"].clone())
        .collect();
    assert!(names.contains(&"cellblock-tests".into()), "{names:?}");
    let inspected = Cli::new(["image", "show", "cellblock-tests", "--json"])
        .run()?
        .json()?;
    assert_eq!(inspected["policy"]["forbid_network_clients"], true);
    let shown = Cli::new(["image", "show", "cellblock-tests"]).run()?;
    assert!(
        shown.stdout.contains("numpy 2.5.5, pandas 3.1.1, "),
        "{}",
        shown.stdout
    );
    let audited = Cli::new(["image", "audit", "cellblock-tests"]).run()?;
    assert_eq!(audited.code(), 0);
    assert!(audited.stdout.starts_with("passed: "), "{}", audited.stdout);
    Ok(())
}

#[test]
fn an_exported_image_runs_in_a_home_that_imported_it() -> Result<()> {
    small_image()?;
    let (_folder, path) = folder(&[])?;
    let exported = Cli::new(["image", "export", "cellblock-tests", "--level", "1", "--json"])
        .folder(&path)
        .run()?
        .json()?;
    let file = exported["path"].as_str().context("no path")?;
    let hash = exported["sha256"].as_str().context("no hash")?;
    ensure!(file.starts_with("./cellblock-image-cellblock-tests-"), "{file}");
    let home = path.join("home");
    let at_home = |arguments: &[&str]| {
        Cli::new(arguments.iter().copied())
            .env("CELLBLOCK_HOME", &home)
            .folder(&path)
            .run()
    };
    let refused = at_home(&["image", "import", file, "--sha256", &"0".repeat(64)])?;
    assert_eq!(refused.code(), 2, "{}", refused.stderr);
    assert!(refused.stderr.contains(hash), "{}", refused.stderr);
    let imported = at_home(&["image", "import", file, "--sha256", hash, "--json"])?.json()?;
    assert_eq!(imported["id"], exported["image"]);
    let ran = at_home(&[
        "run",
        "--image",
        "cellblock-tests",
        "-c",
        "import pandas; print(20 + 22)",
    ])?;
    assert_eq!((ran.code(), ran.stdout.as_str()), (0, "42\n"), "{}", ran.stderr);
    // The archive can also come through a pipe.
    let piped = path.join("piped");
    let from_stdin = Cli::new(["image", "import", "-"])
        .env("CELLBLOCK_HOME", &piped)
        .stdin(std::fs::read(path.join(file))?)
        .run()?;
    assert_eq!(from_stdin.code(), 0, "{}", from_stdin.stderr);
    Ok(())
}

#[test]
fn a_folder_with_an_index_is_a_mirror() -> Result<()> {
    let (_folder, path) = folder(&[])?;
    let mirror = path.join("mirror");
    std::fs::create_dir(&mirror)?;
    let from = mirror.to_string_lossy();
    let exported = export_to_mirror(&mirror)?;
    let index: serde_json::Value = serde_json::from_slice(&std::fs::read(mirror.join("images.json"))?)?;
    assert_eq!(index["images"][0]["sha256"], exported["sha256"]);
    let home = path.join("home");
    let pull = |arguments: &[&str]| {
        let fixed = ["image", "pull", "cellblock-tests", "--json"];
        Cli::new(fixed.iter().chain(arguments).copied())
            .env("CELLBLOCK_HOME", &home)
            .run()
    };
    let nowhere = pull(&[])?;
    assert_eq!(nowhere.code(), 2);
    assert!(
        nowhere.stdout.contains("set CELLBLOCK_IMAGE_MIRROR"),
        "{}",
        nowhere.stdout
    );
    let other = pull(&["--from", &from, "--sha256", &"0".repeat(64)])?;
    assert_eq!(other.code(), 2);
    let pulled = pull(&["--from", &from])?.json()?;
    assert_eq!(pulled["id"], exported["image"]);
    let again = Cli::new(["image", "pull", "cellblock-tests"])
        .env("CELLBLOCK_HOME", &home)
        .env("CELLBLOCK_IMAGE_MIRROR", &*from)
        .run()?;
    assert!(again.stderr.contains("is here already"), "{}", again.stderr);
    Ok(())
}

#[test]
fn a_file_that_is_not_an_archive_is_rejected_and_so_is_a_missing_one() -> Result<()> {
    let (_folder, path) = folder(&[("notes.txt", b"not an archive")])?;
    for (file, message) in [
        (
            "notes.txt",
            "error: import the image archive `notes.txt`: it cannot be read: Unknown frame descriptor",
        ),
        ("missing.tar.zst", "error: open `missing.tar.zst`"),
    ] {
        let imported = Cli::new(["image", "import", file])
            .env("CELLBLOCK_HOME", path.join("home"))
            .folder(&path)
            .run()?;
        assert_eq!(imported.code(), 2, "{}", imported.stderr);
        assert!(imported.stderr.starts_with(message), "{}", imported.stderr);
    }
    Ok(())
}

#[test]
fn the_error_for_a_missing_image_names_the_build_command() -> Result<()> {
    let (_folder, path) = folder(&[])?;
    let empty = |arguments: &[&str]| {
        Cli::new(arguments.iter().copied())
            .env("CELLBLOCK_HOME", &path)
            .run()
    };
    let listed = empty(&["image", "list"])?;
    assert_eq!(
        listed.stdout,
        "no image is built yet; `cellblock image build` builds the default one\n"
    );
    let inspected = empty(&["image", "show"])?;
    assert_eq!((inspected.code(), inspected.stdout.as_str()), (2, ""));
    assert_eq!(
        inspected.stderr,
        "error: image `default` not found (available: none); `cellblock image build` builds one\n"
    );
    assert_eq!(empty(&["image", "remove", "nothing"])?.code(), 2);
    Ok(())
}

#[test]
fn an_invalid_specification_is_reported_with_its_file() -> Result<()> {
    let (_folder, path) = folder(&[("wrong.toml", b"name = \"x\"\npackages = [\"no spaces please\"]\n")])?;
    let built = Cli::new(["image", "build", "wrong.toml", "--json"])
        .folder(&path)
        .run()?;
    assert_eq!(built.code(), 2);
    let report = built.json()?;
    let message = report["error"]["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("wrong.toml") && message.contains("no spaces please"),
        "{message}"
    );
    Ok(())
}

/// Processes with this text in their command lines, by their ids.
fn programs(text: &str) -> Result<Vec<(u32, String)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let Some(id) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // One that has just ended has none.
        let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(text) {
            found.push((id, line));
        }
    }
    Ok(found)
}

/// Bytes of the packages below a directory. What goes away meanwhile is not counted.
fn packages(directory: &Path) -> u64 {
    let mut bytes = 0;
    let mut open = vec![(directory.to_owned(), false)];
    while let Some((path, inside)) = open.pop() {
        let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
        for entry in entries {
            let inside = inside || entry.file_name() == "site-packages";
            match entry.metadata() {
                Ok(found) if found.is_dir() => open.push((entry.path(), inside)),
                Ok(found) if found.is_file() && inside => bytes += found.len(),
                Ok(_) | Err(_) => {}
            }
        }
    }
    bytes
}

#[test]
fn a_command_that_is_ended_during_a_build_leaves_no_compiler_running_and_no_packages_behind() -> Result<()> {
    let spec: &[u8] = b"name = \"tiny\"\npackages = [\"six\"]\npreload = [\"six\"]\n";
    for (arguments, code) in [
        (&["image", "build", "tiny.toml"][..], 143),
        (&["run", "--image", "tiny.toml", "-c", "1"][..], 143),
        (&["serve", "--demo", "--listen", "127.0.0.1:0"][..], 0),
    ] {
        let (folder, path) = folder(&[("tiny.toml", spec)])?;
        // Downloads are shared with other tests.
        let downloads = target_dir().join("test-downloads");
        std::fs::create_dir_all(&downloads)?;
        std::os::unix::fs::symlink(&downloads, path.join("cache"))?;
        let running = Cli::new(arguments.iter().copied())
            .folder(&path)
            .env("CELLBLOCK_HOME", &path)
            .env("CELLBLOCK_SERVE__IMAGE", "tiny.toml")
            .limit(BUILD_LIMIT)
            .start()?;
        let staging = path.join("staging");
        let place = staging.to_string_lossy().into_owned();
        let compiles = || {
            let programs = programs(&place).unwrap();
            programs.iter().any(|(_, it)| it.contains("Compiles modules"))
        };
        let running = running.until("compiled packages", compiles)?;
        assert!(packages(&staging) > 0);
        // To this process alone, as a service manager may do it: what it started is not told.
        let id = i32::try_from(running.id())?;
        kill_process(Pid::from_raw(id).context("an id")?, Signal::TERM)?;
        let ended = running.finish()?;
        assert_eq!(ended.code(), code, "{arguments:?} {}", ended.stderr);
        assert_eq!(programs(&place)?, [], "{arguments:?}");
        assert_eq!(packages(&staging), 0, "{arguments:?}");
        drop(folder);
    }
    Ok(())
}
