//! Size of the release and the tree, compared with the lines of `xtask/footprint.txt`.
//!
//! What is known without a build is also checked by `cargo xtask tidy`, and packages in two
//! versions by `cargo xtask ci deny`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

/// The table, below the root.
pub(crate) const TABLE: &str = "xtask/footprint.txt";

/// By how many percent a count may exceed its line.
const TOLERANCE: u64 = 5;

const PACKAGES: &str = "packages";
const FILES: &str = "tracked_files";
const UNITS: &str = "units";
const SIZE: &str = "program_bytes";

/// All names of the table.
const NAMES: [&str; 4] = [PACKAGES, FILES, UNITS, SIZE];

/// A count, and its name in the table.
pub(crate) type NamedCount = (&'static str, u64);

/// The lines of the table by name.
pub(crate) type CountLines = BTreeMap<String, u64>;

/// Builds a release and prints every count beside its line; with `check`, tells whether no count has grown.
pub fn run(root: &Path, check: bool) -> Result<bool> {
    let lines = lines(root)?;
    let mut counts = of_tree(root)?.to_vec();
    counts.extend(of_release(root)?);
    for (name, count) in &counts {
        let line = lines
            .get(*name)
            .map_or_else(|| "no line".to_owned(), |line| format!("line: {line}"));
        println!("{name:<14} {count:>11}  ({line})");
    }
    if !check {
        return Ok(true);
    }
    let grown = grown(&counts, &lines);
    for problem in &grown {
        eprintln!("{TABLE}: {problem}");
    }
    Ok(grown.is_empty())
}

/// Reads the table.
pub(crate) fn lines(root: &Path) -> Result<CountLines> {
    let text = fs::read_to_string(root.join(TABLE)).with_context(|| format!("read `{TABLE}`"))?;
    read(&text)
}

/// Counts what is known without a build.
pub(crate) fn of_tree(root: &Path) -> Result<[NamedCount; 2]> {
    let lock = fs::read_to_string(root.join("Cargo.lock")).context("read `Cargo.lock`")?;
    let packages = lock.lines().filter(|line| *line == "[[package]]").count();
    let listed = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(root)
        .output()
        .context("start `git ls-files`")?;
    ensure!(
        listed.status.success(),
        "`git ls-files` failed: {}",
        String::from_utf8_lossy(&listed.stderr).trim()
    );
    let listed = String::from_utf8(listed.stdout).context("read `git ls-files`")?;
    let files = listed.split_terminator('\0').count();
    Ok([
        (PACKAGES, u64::try_from(packages)?),
        (FILES, u64::try_from(files)?),
    ])
}

/// Describes the counts that exceed their lines by more than the tolerance, and those without a line.
pub(crate) fn grown(counts: &[NamedCount], lines: &CountLines) -> Vec<String> {
    let problem = |&(name, count): &NamedCount| match lines.get(name) {
        None => Some(format!("no line of `{name}`; add `{name} {count}`")),
        Some(line) if count * 100 > line * (100 + TOLERANCE) => Some(format!(
            "`{name}` is {count}, over {TOLERANCE} % more than its line, {line}; \
             make it smaller, or change the line and say in the commit why"
        )),
        Some(_) => None,
    };
    counts.iter().filter_map(problem).collect()
}

/// Builds the release of the default member, and counts its units and bytes.
fn of_release(root: &Path) -> Result<[NamedCount; 2]> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--release", "--message-format=json-render-diagnostics"])
        .current_dir(root)
        // With the features of the whole workspace, every feature would be on.
        .env_remove("CARGO_RESOLVER_FEATURE_UNIFICATION")
        .stderr(Stdio::inherit())
        .output()
        .context("start cargo")?;
    ensure!(
        output.status.success(),
        "the release does not compile: cargo ended with {}",
        output.status
    );
    let (units, program) = built(&String::from_utf8(output.stdout).context("read cargo's messages")?)?;
    let found = fs::metadata(&program).with_context(|| format!("find `{}`", program.display()))?;
    Ok([(UNITS, units), (SIZE, found.len())])
}

/// Counts the units in cargo's messages as its progress bar does, runs of build scripts included,
/// and finds the program.
fn built(messages: &str) -> Result<(u64, PathBuf)> {
    let (mut units, mut program) = (0, None);
    for line in messages.lines() {
        let message: Value = serde_json::from_str(line).context("read cargo's messages")?;
        match message["reason"].as_str() {
            Some("compiler-artifact") => {
                units += 1;
                if message["target"]["name"] == "cellblock" {
                    program = message["executable"].as_str().map(PathBuf::from).or(program);
                }
            }
            Some("build-script-executed") => units += 1,
            _ => {}
        }
    }
    Ok((units, program.context("cargo has built no `cellblock`")?))
}

/// Reads lines of a name and a number, `#` before a comment.
fn read(text: &str) -> Result<CountLines> {
    let mut lines = CountLines::new();
    let is_counted = |line: &&str| !line.is_empty() && !line.starts_with('#');
    for line in text.lines().map(str::trim).filter(is_counted) {
        let (name, count) = line
            .split_once(char::is_whitespace)
            .with_context(|| format!("`{line}` lacks a number"))?;
        if !NAMES.contains(&name) {
            bail!("nothing counts `{name}`; the names are {}", NAMES.join(", "));
        }
        let count = count.trim();
        let count: u64 = count
            .parse()
            .with_context(|| format!("read the number `{count}` of `{name}`"))?;
        if lines.insert(name.to_owned(), count).is_some() {
            bail!("`{name}` has two lines");
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_may_exceed_its_line_by_five_percent_and_no_more() {
        let lines = read("# why\npackages   540\n\nunits 200\n").unwrap();
        let grown = |count| grown(&[(PACKAGES, count)], &lines);
        assert_eq!(grown(400), Vec::<String>::new());
        assert_eq!(grown(567), Vec::<String>::new());
        assert_eq!(
            grown(568),
            [
                "`packages` is 568, over 5 % more than its line, 540; make it smaller, or change the line \
                 and say in the commit why"
            ]
        );
    }

    #[test]
    fn a_count_without_a_line_is_reported_with_the_line_to_add() {
        let lines = read("packages 540\n").unwrap();
        assert_eq!(
            grown(&[(PACKAGES, 540), (UNITS, 565)], &lines),
            ["no line of `units`; add `units 565`"]
        );
    }

    #[test]
    fn a_table_has_one_number_for_each_known_name() {
        for (text, error) in [
            ("packages\n", "`packages` lacks a number"),
            ("packages many\n", "read the number `many` of `packages`"),
            ("packages 1\npackages 2\n", "`packages` has two lines"),
        ] {
            assert_eq!(read(text).unwrap_err().to_string(), error);
        }
    }

    #[test]
    fn every_artifact_and_every_run_of_a_build_script_is_a_unit() {
        let artifact = |name: &str, executable: Option<&str>| {
            serde_json::json!({
                "reason": "compiler-artifact",
                "target": {"name": name},
                "executable": executable,
                "fresh": true,
            })
        };
        let messages = [
            artifact("build-script-build", None),
            serde_json::json!({"reason": "build-script-executed"}),
            artifact("libc", None),
            artifact("cellblock", Some("/target/release/cellblock")),
            serde_json::json!({"reason": "build-finished", "success": true}),
        ];
        let messages: Vec<_> = messages.iter().map(Value::to_string).collect();
        let built = built(&messages.join("\n")).unwrap();
        assert_eq!(built, (4, "/target/release/cellblock".into()));
    }

    #[test]
    fn packages_and_tracked_files_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\n\n[[package]]\nname = \"b\"\n";
        fs::write(folder.path().join("Cargo.lock"), lock).unwrap();
        fs::write(folder.path().join("untracked"), "").unwrap();
        for arguments in [&["init"][..], &["add", "Cargo.lock"]] {
            let git = Command::new("git")
                .args(arguments)
                .current_dir(folder.path())
                .output();
            assert!(git.unwrap().status.success());
        }
        assert_eq!(of_tree(folder.path()).unwrap(), [(PACKAGES, 2), (FILES, 1)]);
    }
}
