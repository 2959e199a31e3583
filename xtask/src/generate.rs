//! Files that are made from code: written by `cargo xtask generate`. `--check` compares those that
//! this program makes itself; tests compare the others.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::suite::of_package;

/// A file and what it should hold.
struct GoldenFile {
    path: String,
    text: String,
}

/// Lists every generated file. A new one is one more line here.
fn goldens() -> Result<Vec<GoldenFile>> {
    let generation = cellblock_protocol::GENERATION;
    Ok(vec![json(
        format!("crates/protocol/schema/gen-{generation}.json"),
        &cellblock_protocol::schema(),
    )?])
}

fn json(path: String, value: &impl Serialize) -> Result<GoldenFile> {
    let mut value = serde_json::to_value(value).with_context(|| format!("serialise `{path}`"))?;
    // A field that moves in the code is no change of the file.
    value.sort_all_objects();
    let text = serde_json::to_string_pretty(&value).with_context(|| format!("serialise `{path}`"))?;
    Ok(GoldenFile {
        path,
        text: text + "\n",
    })
}

/// Tests that write the files which only they can make, if `CELLBLOCK_UPDATE` is set: package,
/// program and filter.
const WRITERS: &[(&str, &[&str])] = &[
    // `docs/reference/`: `cli.md`, `configuration.md`, `config.schema.json` and `run-output.schema.json`.
    ("cellblock", &["--bin", "cellblock", "reference"]),
    // `docs/reference/metrics.md`
    ("cellblock-gateway", &["--lib", "metrics"]),
    // `docs/reference/openapi.json`
    (
        "cellblock-gateway",
        &["--test", "rest", "the_description_is_up_to_date"],
    ),
    // The answers in `docs/guides/workbench.md`, for which cells run.
    ("cellblock", &["--test", "session", "guide"]),
];

/// Writes all files. Fails if a test that writes one fails.
pub fn write(root: &Path) -> Result<bool> {
    write_goldens(root)?;
    let mut written = true;
    for (package, program) in WRITERS {
        let status = Command::new(env!("CARGO"))
            .args(["test", "--quiet"])
            .args(of_package(package))
            .args(*program)
            .env("CELLBLOCK_UPDATE", "1")
            .current_dir(root)
            .status()
            .context("start cargo")?;
        written &= status.success();
    }
    // The operations and types of the clients, from the description of the API that was just written.
    let clients = Command::new("python3")
        .arg("python/generate.py")
        .current_dir(root)
        .status()
        .context("start python3")?;
    Ok(written && clients.success())
}

fn write_goldens(root: &Path) -> Result<()> {
    for golden in stale(root, goldens()?) {
        let path = root.join(&golden.path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("create `{}`", folder.display()))?;
        }
        fs::write(&path, golden.text).with_context(|| format!("write `{}`", golden.path))?;
        println!("wrote {}", golden.path);
    }
    Ok(())
}

/// Tells whether all files are up to date, and prints those that are not.
pub fn check(root: &Path) -> Result<bool> {
    let stale = stale(root, goldens()?);
    for golden in &stale {
        eprintln!("{} is stale; run `cargo xtask generate`", golden.path);
    }
    Ok(stale.is_empty())
}

fn stale(root: &Path, goldens: Vec<GoldenFile>) -> Vec<GoldenFile> {
    let differs =
        |golden: &GoldenFile| fs::read_to_string(root.join(&golden.path)).ok().as_ref() != Some(&golden.text);
    goldens.into_iter().filter(differs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_stale_when_it_is_missing_or_differs_and_only_then() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("same.json"), "1\n").unwrap();
        fs::write(folder.path().join("old.json"), "2\n").unwrap();
        let goldens = ["same.json", "old.json", "missing.json"]
            .map(|path| json(path.to_owned(), &1).unwrap())
            .into();
        let stale: Vec<_> = stale(folder.path(), goldens)
            .into_iter()
            .map(|golden| golden.path)
            .collect();
        assert_eq!(stale, ["old.json", "missing.json"]);
    }

    #[test]
    fn written_files_pass_the_check() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!check(folder.path()).unwrap());
        write_goldens(folder.path()).unwrap();
        assert!(check(folder.path()).unwrap());
    }
}
