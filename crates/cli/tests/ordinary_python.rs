//! Ordinary Python works: parts of the test suites of `CPython`, numpy, pandas and scipy pass in a sandbox.
//!
//! What runs is said in `tests/ordinary_python/` at the root. Its `expected.toml` says how many
//! tests of each suite pass at least, and which fail and why: a test that fails without standing
//! there is an error, and so is one that stands there and passes. With `CELLBLOCK_SUITES=part`,
//! only suites that depend on the system run.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;
use std::{env, fs};

use anyhow::{Context as _, Result, ensure};
use cellblock_testkit::{Cli, expected_skips, require, target_dir, workspace_root};
use serde::Deserialize;
use serde_json::Value;

/// The image may have to be built first.
const LIMIT: Duration = Duration::from_mins(20);

/// `expected.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectedResults {
    /// The fewest tests that pass, by suite.
    passed: BTreeMap<String, usize>,
    failing: Vec<FailureGroup>,
}

/// Tests that fail for one reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FailureGroup {
    reason: String,
    /// They fail outside a sandbox as well, with some versions of the packages.
    #[serde(default)]
    outside: bool,
    tests: BTreeSet<String>,
}

/// Report of `worker.py` about a suite.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Suite {
    Ended {
        target: String,
        run: usize,
        passed: usize,
        ended: Vec<(String, FailureKind, String)>,
    },
    Crashed {
        target: String,
        crashed: i32,
        log: String,
    },
}

impl Suite {
    fn target(&self) -> &str {
        match self {
            Self::Ended { target, .. } | Self::Crashed { target, .. } => target,
        }
    }
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum FailureKind {
    Failed,
    Skipped,
}

#[test]
fn cpythons_own_tests_pass_in_a_sandbox() -> Result<()> {
    require!(UserNamespaces);
    match suites("cpython.py", &[])? {
        Some(suites) => compare(&suites, |name| name.starts_with("test.") && is_run(&suites, name)),
        None => lacks_tests(),
    }
}

#[test]
fn the_tests_of_numpy_pandas_and_scipy_pass_in_a_sandbox() -> Result<()> {
    require!(UserNamespaces);
    let suites = suites("packages.py", &["--require", "pytest", "--require", "hypothesis"])?;
    let suites = suites.context("no results")?;
    compare(&suites, |name| {
        !name.starts_with("test.") && is_run(&suites, name)
    })
}

fn is_part() -> bool {
    env::var_os("CELLBLOCK_SUITES").is_some_and(|value| value == "part")
}

/// Whether a suite, or a test by its name, has to have run: in a part, those of other suites have not.
fn is_run(suites: &[Suite], name: &str) -> bool {
    !is_part() || suites.iter().any(|suite| name.starts_with(suite.target()))
}

fn folder() -> PathBuf {
    workspace_root().join("tests/ordinary_python")
}

/// Runs the suites of a file; none when the interpreter has no tests of its own.
fn suites(file: &str, options: &[&str]) -> Result<Option<Vec<Suite>>> {
    let part: &[&str] = if is_part() { &["-f", "part.py"] } else { &[] };
    let start = [
        "-f",
        "suite.py",
        "-f",
        file,
        "--input",
        "worker=worker.py",
        "--json",
        "--timeout",
        "900",
    ];
    let arguments = ["run"].iter().chain(part).chain(&start).chain(options);
    let finished = Cli::new(arguments.copied())
        // A machine that also builds something takes longer than a cell usually may.
        .env("CELLBLOCK_MAX_TIMEOUT", "900")
        .folder(folder())
        .limit(LIMIT)
        .run()?;
    let report = finished.json()?;
    ensure!(finished.code() == 0, "{report:#}\nstderr: {}", finished.stderr);
    let cell = report["cells"]
        .as_array()
        .and_then(|cells| cells.last())
        .context("no cells")?;
    let path = results(cell).with_context(|| format!("no results: {}", cell["stdout"]))?;
    let bytes = fs::read(path).with_context(|| format!("read `{path}`"))?;
    serde_json::from_slice(&bytes).context("parse the results")
}

/// Returns the bytes of the cell's `results.json`.
fn results(cell: &Value) -> Option<&str> {
    let file = cell["files"]
        .as_array()?
        .iter()
        .find(|file| file["name"] == "results.json")?;
    cell["artifacts"]
        .as_array()?
        .iter()
        .find(|it| it["sha256"] == file["sha256"])?["path"]
        .as_str()
}

/// Compares what happened with what is expected of the suites that `concerned` chooses.
fn compare(suites: &[Suite], concerned: impl Fn(&str) -> bool) -> Result<()> {
    let text = fs::read_to_string(folder().join("expected.toml"))?;
    let expected: ExpectedResults = toml::from_str(&text)?;
    let mut complaints = Vec::new();
    let mut missing: BTreeSet<_> = expected.passed.keys().filter(|name| concerned(name)).collect();
    let mut failed = BTreeMap::new();
    for suite in suites {
        match suite {
            Suite::Crashed { target, crashed, log } => {
                complaints.push(format!("{target} ended with {crashed}: {log}"));
            }
            Suite::Ended {
                target,
                run,
                passed,
                ended,
            } => {
                missing.remove(target);
                match expected.passed.get(target) {
                    None => complaints.push(format!(
                        "{target} has no line in `expected.toml`; {passed} of {run} passed"
                    )),
                    Some(floor) if passed < floor => {
                        complaints.push(format!(
                            "{target}: {passed} of {run} passed, at least {floor} should"
                        ));
                    }
                    Some(_) => {}
                }
                failed.extend(
                    ended
                        .iter()
                        .filter(|it| it.1 == FailureKind::Failed)
                        .map(|it| (it.0.as_str(), it.2.as_str())),
                );
            }
        }
    }
    complaints.extend(missing.iter().map(|name| format!("{name} did not run")));
    for failing in &expected.failing {
        assert!(
            !failing.reason.is_empty(),
            "tests without a reason: {:?}",
            failing.tests
        );
        for test in failing.tests.iter().filter(|test| concerned(test)) {
            if failed.remove(test.as_str()).is_none() && !failing.outside {
                complaints.push(format!(
                    "{test} passes or is gone; strike it from `expected.toml`"
                ));
            }
        }
    }
    complaints.extend(failed.iter().map(|(test, why)| format!("{test} failed: {why}")));
    ensure!(
        complaints.is_empty(),
        "{} complaints:\n{}",
        complaints.len(),
        complaints.join("\n")
    );
    Ok(())
}

/// Records that the interpreter came without its tests, and fails where that is not expected.
fn lacks_tests() -> Result<()> {
    let file = env::var_os("CELLBLOCK_SKIPS").map_or_else(|| target_dir().join("skips.jsonl"), PathBuf::from);
    let line = serde_json::json!({
        "test": "ordinary_python: cpythons_own_tests_pass_in_a_sandbox",
        "capability": "python:test",
        "reason": "the image's interpreter has no `test` package",
    });
    let mut file = fs::OpenOptions::new().create(true).append(true).open(file)?;
    file.write_all(format!("{line}\n").as_bytes())?;
    let required = env::var_os("CELLBLOCK_REQUIRE_ALL").is_some_and(|value| value == "1");
    let expected = expected_skips(&workspace_root().join(".ci/expected-skips")).contains_key("python:test");
    ensure!(
        !required || expected,
        "the image's interpreter has no `test` package; build the image from one that has"
    );
    Ok(())
}
