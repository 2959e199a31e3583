//! The steps that a change must pass, run to the end so that one run shows every failure.

use std::env;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;

use crate::suite::{self, Compiler, LoggedCommand, Suite, TestSelection};
use crate::{cargo, find_program, generate, judges, spawn, tidy};

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Step {
    /// `cargo fmt --check`
    Fmt,
    /// `cargo clippy` with warnings as errors
    Clippy,
    /// All tests, one more program of them at once than there are processors
    Test,
    /// The rules of `cargo xtask tidy`
    Tidy,
    /// Licences, duplicate and banned dependencies, sources
    Deny,
    /// Generated files are up to date
    Generated,
    /// ruff over all Python, and mypy over the client
    Ruff,
    /// `ruff`, and the unit tests of the kernel
    Python,
    /// All of the above except `test`, and the unit tests
    Fast,
    /// All tests over gVisor and in emulated machines, of which `test` runs a part
    Walls,
}

/// Steps that run programs of tests.
const TESTS: [Step; 4] = [Step::Test, Step::Python, Step::Fast, Step::Walls];

/// Steps beside the tests.
const CHECKS: [Step; 5] = [Step::Fmt, Step::Tidy, Step::Deny, Step::Generated, Step::Ruff];

/// Runs `steps`, or all when there are none, and lists skipped tests; tells whether every step
/// passed. Of tests, only those of `selection` run.
pub fn run(root: &Path, steps: &[Step], selection: &TestSelection) -> bool {
    let mut results = Results::default();
    // Others may run beside tests, in a process of their own.
    let has_tests = steps.is_empty() || steps.iter().any(|step| TESTS.contains(step));
    if has_tests {
        suite::forget_skips(root);
    }
    if steps.is_empty() {
        fast(root, &mut results, |suite, results| {
            results.time("docs", || suite::documentation(root, Compiler::Linting));
            results.time("test", || test(root, suite));
        });
    }
    for step in steps {
        match step {
            Step::Fast => fast(root, &mut results, |_, _| {}),
            step => drop(results.time(&name(*step), || run_one(root, *step, selection))),
        }
    }
    if has_tests {
        eprint!("{}", suite::skips(root));
    }
    eprint!("{}", results.summary());
    results.0.iter().all(|result| result.passed)
}

/// Builds all tests, and runs the unit tests, then what `rest` does with the others, and the checks
/// beside both.
fn fast(root: &Path, results: &mut Results, rest: impl FnOnce(Suite, &mut Results)) {
    let built = results.time("build", || {
        suite::build(root, Compiler::Linting, &TestSelection::default())
    });
    let start = Instant::now();
    let checks = BackgroundSteps::start(root, &CHECKS);
    if let Some((suite, warnings)) = built {
        results.time("clippy", || without_warnings(&warnings));
        let (unit, others) = suite.split_unit();
        results.time("unit", || unit.run());
        rest(others, results);
    }
    results.finish("checks", start, checks.and_then(BackgroundSteps::finish));
}

fn without_warnings(warnings: &[String]) -> Result<()> {
    pass(
        warnings.is_empty(),
        &format!("the build has printed {} warnings, see above", warnings.len()),
    )
}

/// Results of steps.
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
struct BackgroundSteps(LoggedCommand);

impl BackgroundSteps {
    fn start(root: &Path, steps: &[Step]) -> Result<Self> {
        let mut command = Command::new("nice");
        command.args(["-n", "19"]).arg(env::current_exe()?).arg("ci");
        command
            .args(steps.iter().map(|step| name(*step)))
            .current_dir(root);
        Ok(Self(LoggedCommand::start(&mut command)?))
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

fn run_one(root: &Path, step: Step, selection: &TestSelection) -> Result<()> {
    match step {
        Step::Fmt => spawn(cargo(root).args(["fmt", "--all", "--check"])),
        Step::Clippy => spawn(
            cargo(root)
                .args(["clippy", "--workspace", "--all-targets", "--all-features"])
                .args(["--", "-D", "warnings"]),
        ),
        Step::Test if selection.is_all() => {
            let (suite, _) = suite::build(root, Compiler::Plain, selection)?;
            suite::documentation(root, Compiler::Plain)?;
            test(root, suite)
        }
        Step::Test if selection.is_kernel() => Suite::of_kernel(root, selection.filter.as_deref())?.run(),
        Step::Test => suite::build(root, Compiler::Plain, selection)?.0.run(),
        Step::Walls => suite::build(root, Compiler::Plain, selection)?.0.walls().run(),
        Step::Tidy => pass(tidy::run(root)?, "the rules above are broken"),
        Step::Generated => pass(generate::check(root)?, "generated files are stale"),
        Step::Deny => deny(root),
        Step::Ruff => ruff(root),
        Step::Python => ruff(root).and(Suite::of_kernel(root, None)?.run()),
        Step::Fast => bail!("`fast` is several steps"),
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
    spawn(cargo(root).args(["fetch", "--locked"]))?;
    let check = ["deny", "--offline", "check", "--hide-inclusion-graph"];
    spawn(cargo(root).args(check).args(["licenses", "bans", "sources"]))
}

fn ruff(root: &Path) -> Result<()> {
    let package = root.join("crates/guest/python");
    let ruff = find_program("ruff").context("ruff is missing; run `pip install ruff`")?;
    let probes = root.join("tests/containment");
    let properties = root.join("tests/timeseries");
    let clients = root.join("tests/clients");
    let client = root.join("python");
    let bundle = root.join("crates/connector/python");
    let file_program = root.join("crates/dialects/python");
    let frameworks = root.join("integrations");
    let judges = root.join("tests/judges");
    let linted_folders = [
        &package,
        &bundle,
        &file_program,
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
    let typed = typed(&client).and(typed(&bundle)).and(typed(&file_program));
    let scripts = root.join("bench/python");
    let rules = package.join("pyproject.toml");
    let benched = spawn(
        Command::new(ruff)
            .args(["check", "--no-cache", "--config"])
            .args([&rules, &scripts]),
    );
    linted.and(formatted).and(typed).and(benched)
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
    fn a_step_that_fails_does_not_stop_the_ones_after_it_and_fails_the_run() {
        let nowhere = tempfile::tempdir().unwrap();
        // No workspace is there, so both fail.
        assert!(!run(
            nowhere.path(),
            &[Step::Generated, Step::Tidy],
            &TestSelection::default()
        ));
    }
}
