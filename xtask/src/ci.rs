//! The steps that a change must pass, run to the end so that one run shows every failure.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, fs};

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;

use crate::suite::{self, Printing, Suite};
use crate::{generate, judges, tidy};

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Step {
    /// `cargo fmt --check`
    Fmt,
    /// `cargo clippy` with warnings as errors
    Clippy,
    /// All tests, as many programs of them at once as there are processors
    Test,
    /// The rules of `cargo xtask tidy`
    Tidy,
    /// Licences, duplicate and banned dependencies, sources
    Deny,
    /// Generated files are up to date
    Generated,
    /// ruff over all Python, mypy over the client, and the unit tests of the kernel
    Python,
}

/// Runs `steps`, or all when there are none; tells whether every one passed.
pub fn run(root: &Path, steps: &[Step]) -> bool {
    let steps = if steps.is_empty() {
        Step::value_variants()
    } else {
        steps
    };
    let others: Vec<_> = steps.iter().copied().filter(|step| *step != Step::Test).collect();
    let mut results = Results::default();
    if others.is_empty() || others.len() == steps.len() {
        for step in steps {
            results.time(&name(*step), || run_one(root, *step));
        }
    } else {
        test_beside(root, &others, &mut results);
    }
    eprint!("{}", results.summary());
    results.0.iter().all(|result| result.passed)
}

/// Tests, and runs the other steps meanwhile: the tests leave the processors idle for a part of their time.
fn test_beside(root: &Path, others: &[Step], results: &mut Results) {
    let suite = results.time("build", || suite::build(root));
    // Before the others: cargo builds for one command at a time.
    results.time("docs", || suite::documentation(root));
    let start = Instant::now();
    let beside = Beside::start(root, others);
    if let Some(suite) = suite {
        results.time("test", || test(root, suite));
    }
    results.finish("the others", start, beside.and_then(Beside::finish));
}

/// How steps ended.
#[derive(Debug, Default)]
struct Results(Vec<StepResult>);

#[derive(Debug)]
struct StepResult {
    name: String,
    passed: bool,
    took: Duration,
}

impl Results {
    fn time<T>(&mut self, name: &str, run: impl FnOnce() -> Result<T>) -> Option<T> {
        eprintln!("== {name} ==");
        let start = Instant::now();
        let result = run();
        self.finish(name, start, result)
    }

    fn finish<T>(&mut self, name: &str, start: Instant, result: Result<T>) -> Option<T> {
        if let Err(error) = &result {
            eprintln!("{name} failed: {error:#}");
        }
        self.0.push(StepResult {
            name: name.to_owned(),
            passed: result.is_ok(),
            took: start.elapsed(),
        });
        result.ok()
    }

    fn summary(&self) -> String {
        let line = |StepResult { name, passed, took }: &StepResult| {
            let verdict = if *passed { "passed" } else { "FAILED" };
            format!("{name:<10} {verdict} {:>7.1} s\n", took.as_secs_f64())
        };
        self.0.iter().map(line).collect()
    }
}

/// Steps that another process of this program runs at the lowest priority.
#[derive(Debug)]
struct Beside(Printing);

impl Beside {
    fn start(root: &Path, steps: &[Step]) -> Result<Self> {
        let mut command = Command::new("nice");
        command.args(["-n", "19"]).arg(env::current_exe()?).arg("ci");
        command
            .args(steps.iter().map(|step| name(*step)))
            .current_dir(root);
        Ok(Self(Printing::start(&mut command)?))
    }

    fn finish(self) -> Result<()> {
        let (passed, printed) = self.0.finish()?;
        eprint!("{printed}");
        pass(passed, "a step failed")
    }
}

fn name(step: Step) -> String {
    step.to_possible_value()
        .map(|value| value.get_name().to_owned())
        .unwrap_or_default()
}

fn run_one(root: &Path, step: Step) -> Result<()> {
    match step {
        Step::Fmt => cargo(root, &["fmt", "--all", "--check"]),
        Step::Clippy => cargo(
            root,
            &[
                "clippy",
                "--workspace",
                "--all-targets",
                "--all-features",
                "--",
                "-D",
                "warnings",
            ],
        ),
        Step::Test => {
            let suite = suite::build(root)?;
            suite::documentation(root)?;
            test(root, suite)
        }
        Step::Tidy => pass(tidy::run(root)?, "the rules above are broken"),
        Step::Generated => pass(generate::check(root)?, "generated files are stale"),
        Step::Deny => deny(root),
        Step::Python => python(root),
    }
}

/// Runs all tests, and compares what the suites of other projects reported with the table.
fn test(root: &Path, suite: Suite) -> Result<()> {
    judges::begin(root);
    suite.run()?;
    judges::check(root)
}

fn pass(passed: bool, otherwise: &str) -> Result<()> {
    if !passed {
        bail!("{otherwise}");
    }
    Ok(())
}

/// Checks all that needs no network: the advisory database is a git repository that a build machine need
/// not reach, so advisories are for a developer to look up with a plain `cargo deny check`. The graph
/// names crates of platforms that nothing here is built for, so a fresh machine has yet to fetch them.
fn deny(root: &Path) -> Result<()> {
    if find_program("cargo-deny").is_none() {
        bail!("cargo-deny is missing; run `cargo install cargo-deny --locked`");
    }
    cargo(root, &["fetch", "--locked"])?;
    cargo(
        root,
        &[
            "deny",
            "--offline",
            "check",
            "--hide-inclusion-graph",
            "licenses",
            "bans",
            "sources",
        ],
    )
}

fn python(root: &Path) -> Result<()> {
    let package = root.join("crates/guest/python");
    let ruff = find_program("ruff").context("ruff is missing; run `pip install ruff`")?;
    let probes = root.join("tests/containment");
    let properties = root.join("tests/timeseries");
    let clients = root.join("tests/clients");
    let client = root.join("python");
    let bundle = root.join("crates/connector/python");
    let frameworks = root.join("integrations");
    let judges = root.join("tests/judges");
    let linted_folders = [
        &package,
        &bundle,
        &probes,
        &properties,
        &clients,
        &client,
        &frameworks,
        &judges,
    ];
    let linted = spawn(
        Command::new(&ruff)
            .args(["check", "--no-cache"])
            .args(linted_folders),
    );
    let formatted = spawn(
        Command::new(&ruff)
            .args(["format", "--check", "--no-cache"])
            .args(linted_folders),
    );
    let mypy = find_program("mypy").context("mypy is missing; run `pip install mypy`")?;
    let typed = |folder: &Path| {
        spawn(
            Command::new(&mypy)
                .arg("--cache-dir=/dev/null")
                .current_dir(folder),
        )
    };
    let typed = typed(&client).and(typed(&bundle));
    let scripts = root.join("bench/python");
    let rules = package.join("pyproject.toml");
    let benched = spawn(
        Command::new(ruff)
            .args(["check", "--no-cache", "--config"])
            .args([&rules, &scripts]),
    );
    let python = kernel_python(root).context("no Python 3.11 or newer on PATH, and no image was built")?;
    eprintln!("kernel tests with {}", python.display());
    let tested = spawn(
        Command::new(python)
            .args(["-B", "-m", "unittest", "discover", "--start-directory", "."])
            .current_dir(package),
    );
    linted.and(formatted).and(typed).and(benched).and(tested)
}

/// Finds the interpreter for the kernel's tests: `CELLBLOCK_PYTHON`, that of an image with many libraries or at least pandas, or one on
/// PATH.
fn kernel_python(root: &Path) -> Option<PathBuf> {
    let home =
        env::var_os("CELLBLOCK_HOME").map_or_else(|| root.join("target/cellblock-home"), PathBuf::from);
    let images = fs::read_dir(home.join("images")).into_iter().flatten().flatten();
    let images: Vec<_> = images
        .map(|image| image.path().join("python/bin/python3"))
        .collect();
    let having = |libraries: &str| {
        let script = format!(
            "import importlib.util as it, sys; sys.exit(any(it.find_spec(name) is None for name in {libraries}))"
        );
        images.iter().find(|python| agrees(python, &script)).cloned()
    };
    let on_path = ["python3.13", "python3.12", "python3.11", "python3"]
        .into_iter()
        .filter_map(find_program);
    let new_enough = "import sys; sys.exit(sys.version_info < (3, 11))";
    env::var_os("CELLBLOCK_PYTHON")
        .map(PathBuf::from)
        .or_else(|| having("('pandas', 'polars', 'matplotlib', 'altair')"))
        .or_else(|| having("('pandas',)"))
        .or_else(|| on_path.into_iter().find(|python| agrees(python, new_enough)))
}

fn agrees(python: &Path, script: &str) -> bool {
    Command::new(python)
        .args(["-c", script])
        .output()
        .is_ok_and(|output| output.status.success())
}

pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|candidate| candidate.is_file())
}

fn cargo(root: &Path, args: &[&str]) -> Result<()> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    spawn(Command::new(cargo).args(args).current_dir(root))
}

fn spawn(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("start {command:?}"))?;
    pass(status.success(), &format!("{command:?} ended with {status}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_has_a_line_for_every_step_with_its_verdict() {
        let result = |name: &str, passed, took| StepResult {
            name: name.to_owned(),
            passed,
            took,
        };
        let results = Results(vec![
            result("fmt", true, Duration::from_millis(1234)),
            result("generated", false, Duration::from_mins(2)),
        ]);
        assert_eq!(
            results.summary(),
            "fmt        passed     1.2 s\ngenerated  FAILED   120.0 s\n"
        );
    }

    #[test]
    fn a_command_that_fails_is_an_error_with_its_status() {
        let error = spawn(Command::new("sh").args(["-c", "exit 3"]))
            .unwrap_err()
            .to_string();
        assert_eq!(error, r#""sh" "-c" "exit 3" ended with exit status: 3"#);
    }

    #[test]
    fn a_step_that_fails_does_not_stop_the_ones_after_it_and_fails_the_run() {
        let nowhere = tempfile::tempdir().unwrap();
        // No workspace is there, so both fail.
        assert!(!run(nowhere.path(), &[Step::Generated, Step::Tidy]));
    }
}
