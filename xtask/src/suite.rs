//! Building all tests, and running their programs side by side.
//!
//! `cargo test` runs one program after another, and many of ours mostly wait: for deadlines, and for processes to start and end. So as many
//! run at once as there are processors.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{env, thread};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::ci::find_program;

/// What is tested of the workspace: stores in S3 are an optional feature.
const WHAT: [&str; 3] = ["--workspace", "--features", "cellblock-artifact/s3"];
/// Programs that take longest, longest first: one that began last would run alone at the end. Those with emulated machines, which leave
/// little of the processors, are apart.
const LONGEST: [&str; 16] = [
    "cellblock-interpreter conformance (microvm)",
    "cellblock ordinary_python",
    "cellblock-interpreter conformance (gvisor)",
    "cellblock it",
    "cellblock-interpreter containment (microvm)",
    "cellblock-interpreter containment",
    "cellblock-walls firecracker",
    "cellblock-interpreter containment (gvisor)",
    "cellblock gateway",
    "cellblock-walls microvm",
    "cellblock-interpreter conformance",
    "cellblock-interpreter death",
    "cellblock session",
    "cellblock it (warm)",
    "cellblock clients",
    "cellblock-interpreter conformance (remote)",
];

/// A further run of a program, with variables in its environment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Variant {
    program: &'static str,
    name: &'static str,
    variables: &'static [(&'static str, &'static str)],
    /// Parts of the names of its tests, if not all of them run.
    only: &'static [&'static str],
    /// A program without which all of its tests would fail.
    needs: Option<&'static str>,
    /// Whether tests that fail run once more, when no other program runs: code in emulated machines may reach limits beside others.
    again: bool,
}

/// Names the backend over which a program's sandboxes are.
const BACKEND: &str = "CELLBLOCK_TEST_BACKEND";
const CONFORMANCE: &str = "cellblock-interpreter conformance";
const CONTAINMENT: &str = "cellblock-interpreter containment";

/// Those groups of attacks that a backend of its own kernel answers differently; the others take minutes there.
const PROBES: (&str, &str) = (
    "CELLBLOCK_PROBES",
    "descriptors,files,information,kernel,network,privileges,processes",
);

/// All further runs.
static VARIANTS: [Variant; 6] = [
    Variant {
        program: "cellblock it",
        name: "warm",
        variables: &[("CELLBLOCK_TEST_WARM", "1")],
        // Those whose commands a warm host would run.
        only: &[
            "bad_input::",
            "connectors",
            "ctrl_c::",
            "datasets::",
            "derivation::",
            "guard::",
            "notebook::",
            "python_client::",
            "run::",
        ],
        needs: None,
        again: false,
    },
    Variant {
        program: CONFORMANCE,
        name: "remote",
        variables: &[(BACKEND, "remote")],
        only: &[],
        needs: None,
        again: false,
    },
    Variant {
        program: CONFORMANCE,
        name: "gvisor",
        variables: &[(BACKEND, "gvisor")],
        only: &[],
        needs: Some("runsc"),
        again: false,
    },
    Variant {
        program: CONFORMANCE,
        name: "microvm",
        variables: &[(BACKEND, "microvm")],
        only: &[],
        needs: Some("qemu-system-x86_64"),
        again: true,
    },
    Variant {
        program: CONTAINMENT,
        name: "gvisor",
        variables: &[(BACKEND, "gvisor"), PROBES],
        only: &["contained::no_probe"],
        needs: Some("runsc"),
        again: false,
    },
    Variant {
        program: CONTAINMENT,
        name: "microvm",
        variables: &[(BACKEND, "microvm"), PROBES],
        only: &["contained::no_probe"],
        needs: Some("qemu-system-x86_64"),
        again: false,
    },
];

impl Variant {
    /// Says so if its program is missing; where everything is required, it runs and fails.
    fn can_run(&self) -> bool {
        let Some(needed) = self.needs else { return true };
        let required = env::var_os("CELLBLOCK_REQUIRE_ALL").is_some_and(|value| value == "1");
        let runs = required || find_program(needed).is_some();
        if !runs {
            println!(
                "skipped: {} ({}), because `{needed}` is not on PATH",
                self.program, self.name
            );
        }
        runs
    }
}

/// A program of tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TestProgram {
    pub(crate) package: String,
    pub(crate) target: String,
    pub(crate) executable: PathBuf,
    /// The package's directory, in which its tests run.
    pub(crate) folder: PathBuf,
    /// How it runs, if it is a further run.
    pub(crate) variant: Option<&'static Variant>,
}

/// How a program ended.
#[derive(Debug)]
struct Ended {
    name: String,
    passed: bool,
    took: Duration,
    /// Names of the tests that failed.
    failed: Vec<String>,
}

/// The programs of all tests.
#[derive(Debug)]
pub struct Suite(Vec<TestProgram>);

/// Builds the programs of all tests.
pub fn build(root: &Path) -> Result<Suite> {
    let mut programs = compile(cargo(root).arg("test").args(WHAT).arg("--no-run"))?;
    let again: Vec<_> = VARIANTS
        .iter()
        .filter(|variant| variant.can_run())
        .filter_map(|variant| {
            let program = programs
                .iter()
                .find(|program| program.name() == variant.program)?;
            Some(TestProgram {
                variant: Some(variant),
                ..program.clone()
            })
        })
        .collect();
    programs.extend(again);
    programs.sort_by_key(|program| {
        let at = LONGEST.iter().position(|name| *name == program.name());
        at.unwrap_or(LONGEST.len())
    });
    Ok(Suite(programs))
}

/// Runs a command of cargo that builds programs of tests, and returns them.
pub(crate) fn compile(cargo: &mut Command) -> Result<Vec<TestProgram>> {
    let mut building = cargo
        .arg("--message-format=json-render-diagnostics")
        .stdout(Stdio::piped())
        .spawn()
        .context("start cargo")?;
    let mut told = String::new();
    let mut output = building.stdout.take().context("no output of cargo")?;
    output.read_to_string(&mut told)?;
    let status = building.wait()?;
    if !status.success() {
        bail!("the tests do not compile: cargo ended with {status}");
    }
    programs(&told)
}

/// Runs the examples in the documentation.
pub fn documentation(root: &Path) -> Result<()> {
    let status = cargo(root).args(["test", "--doc"]).args(WHAT).status()?;
    if !status.success() {
        bail!("examples of the documentation failed: cargo ended with {status}");
    }
    Ok(())
}

impl Suite {
    /// Runs all programs, and prints what each has printed once it has ended.
    pub fn run(self) -> Result<()> {
        let lanes = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let queue = Mutex::new(VecDeque::from(self.0));
        let ended: Mutex<Vec<(TestProgram, Ended)>> = Mutex::default();
        thread::scope(|scope| {
            for _ in 0..lanes {
                scope.spawn(|| {
                    while let Some(program) = { lock(&queue).pop_front() } {
                        let one = program.run(&[]);
                        lock(&ended).push((program, one));
                    }
                });
            }
        });
        let ended = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
        let ended: Vec<_> = ended
            .into_iter()
            .map(|(program, one)| one.again(&program))
            .collect();
        print!("{}", times(&ended));
        let failed: Vec<_> = ended
            .iter()
            .filter(|one| !one.passed)
            .map(|one| one.name.as_str())
            .collect();
        if !failed.is_empty() {
            bail!("{} failed", failed.join(", "));
        }
        Ok(())
    }
}

impl TestProgram {
    fn name(&self) -> String {
        let how = self
            .variant
            .map_or_else(String::new, |variant| format!(" ({})", variant.name));
        format!("{} {}{how}", self.package, self.target)
    }

    /// Runs the tests with these names; all of them if there is none.
    fn run(&self, tests: &[String]) -> Ended {
        let start = Instant::now();
        let (passed, printed) = self
            .output(tests)
            .unwrap_or_else(|error| (false, format!("{error:#}\n")));
        let (name, took) = (self.name(), start.elapsed());
        println!("\n== {name}: {:.1} s ==\n{printed}", took.as_secs_f64());
        let failed = failed_tests(&printed);
        Ended {
            name,
            passed,
            took,
            failed,
        }
    }

    fn output(&self, tests: &[String]) -> Result<(bool, String)> {
        let mut command = Command::new(&self.executable);
        command
            .current_dir(&self.folder)
            // As cargo does it.
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .env("CARGO_PKG_NAME", &self.package)
            .stdin(Stdio::null());
        if let Some(variant) = self.variant {
            command.envs(variant.variables.iter().copied());
        }
        match self.variant {
            _ if !tests.is_empty() => command.arg("--exact").args(tests),
            Some(variant) => command.args(variant.only),
            None => &mut command,
        };
        Printing::start(&mut command)?.finish()
    }
}

impl Ended {
    /// Runs the tests that failed once more, where that is allowed, and says which passed only then. No other program of tests may run.
    fn again(mut self, program: &TestProgram) -> Self {
        if self.failed.is_empty() || !program.variant.is_some_and(|variant| variant.again) {
            return self;
        }
        let alone = program.run(&self.failed);
        self.took += alone.took;
        if alone.passed {
            self.passed = true;
            let _ = write!(self.name, "; only alone: {}", self.failed.join(", "));
        }
        self
    }
}

/// A command that prints into a file: both streams stay in order, and a child that outlives it holds no pipe that somebody reads.
#[derive(Debug)]
pub(crate) struct Printing {
    running: Child,
    file: File,
}

impl Printing {
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let file = tempfile::tempfile().context("create a file for what a command prints")?;
        let running = command
            .stdout(file.try_clone()?)
            .stderr(file.try_clone()?)
            .spawn()
            .with_context(|| format!("start {command:?}"))?;
        Ok(Self { running, file })
    }

    /// Waits for its end; says whether it succeeded, and what it has printed.
    pub(crate) fn finish(mut self) -> Result<(bool, String)> {
        let status = self.running.wait()?;
        let mut printed = Vec::new();
        self.file.rewind()?;
        self.file.read_to_end(&mut printed)?;
        let mut printed = String::from_utf8_lossy(&printed).into_owned();
        if !status.success() {
            let _ = writeln!(printed, "it ended with {status}");
        }
        Ok((status.success(), printed))
    }
}

fn cargo(root: &Path) -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root);
    cargo
}

/// The programs among what cargo says that it has built.
fn programs(told: &str) -> Result<Vec<TestProgram>> {
    let lines = told.lines().map(serde_json::from_str::<Value>);
    let mut found = Vec::new();
    for line in lines {
        let line = line.context("read what cargo tells")?;
        let Some(executable) = line["executable"]
            .as_str()
            .filter(|_| line["profile"]["test"] == true)
        else {
            continue;
        };
        let text = |value: &Value| value.as_str().map(str::to_owned).context("not a text");
        let manifest = PathBuf::from(text(&line["manifest_path"])?);
        let folder = manifest.parent().context("a manifest without a directory")?;
        found.push(TestProgram {
            package: package(&text(&line["package_id"])?).to_owned(),
            target: text(&line["target"]["name"])?,
            executable: executable.into(),
            folder: folder.to_owned(),
            variant: None,
        });
    }
    Ok(found)
}

/// The name in a package's id: `path+file:///here/crates/mcp#cellblock-mcp@0.1.0`, or `path+file:///here/xtask#0.1.0` where the directory
/// has the same.
fn package(id: &str) -> &str {
    let (place, version) = id.rsplit_once('#').unwrap_or((id, ""));
    match version.split_once('@') {
        Some((name, _)) => name,
        None => place.rsplit('/').next().unwrap_or(place),
    }
}

/// The names of tests that failed, in what a program of tests prints.
fn failed_tests(printed: &str) -> Vec<String> {
    let failed = |line: &str| {
        let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
        Some(name.to_owned())
    };
    printed.lines().filter_map(failed).collect()
}

fn times(ended: &[Ended]) -> String {
    let mut ended: Vec<_> = ended.iter().collect();
    ended.sort_by_key(|one| std::cmp::Reverse(one.took));
    let line = |one: &Ended| {
        let verdict = if one.passed { "passed" } else { "FAILED" };
        format!("{verdict} {:>7.1} s  {}\n", one.took.as_secs_f64(), one.name)
    };
    ended.into_iter().map(line).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(executable: &str) -> TestProgram {
        TestProgram {
            package: "package".to_owned(),
            target: executable.to_owned(),
            executable: executable.into(),
            folder: "/".into(),
            variant: None,
        }
    }

    #[test]
    fn programs_of_tests_are_found_among_what_cargo_builds() {
        let line = |id: &str, test: bool, executable: Option<&str>| {
            serde_json::json!({
                "reason": "compiler-artifact",
                "package_id": id,
                "manifest_path": "/here/crates/mcp/Cargo.toml",
                "target": {"name": "it"},
                "profile": {"test": test},
                "executable": executable,
            })
        };
        let told = [
            line(
                "path+file:///here/crates/mcp#cellblock-mcp@0.1.0",
                true,
                Some("/here/it-1"),
            ),
            line("path+file:///here/xtask#0.1.0", true, Some("/here/it-2")),
            line("path+file:///here/xtask#0.1.0", false, Some("/here/xtask")),
            line("registry+https://index#serde@1.0.0", false, None),
            serde_json::json!({"reason": "build-finished", "success": true}),
        ];
        let told: Vec<_> = told.iter().map(Value::to_string).collect();
        let found = programs(&told.join("\n")).unwrap();
        let names: Vec<_> = found.iter().map(TestProgram::name).collect();
        assert_eq!(names, ["cellblock-mcp it", "xtask it"]);
        assert_eq!(found[0].executable, Path::new("/here/it-1"));
        assert_eq!(found[0].folder, Path::new("/here/crates/mcp"));
    }

    #[test]
    fn every_program_runs_and_those_that_fail_are_named() {
        let programs = ["true", "false", "/nowhere/program", "true"].map(program);
        let error = Suite(programs.into()).run().unwrap_err().to_string();
        let failed = error.strip_suffix(" failed").unwrap();
        let mut failed: Vec<_> = failed.split(", ").collect();
        failed.sort_unstable();
        assert_eq!(failed, ["package /nowhere/program", "package false"]);
    }

    #[test]
    fn tests_that_fail_beside_others_may_pass_alone_and_are_named() {
        static AGAIN: Variant = Variant {
            program: "package tests",
            name: "again",
            variables: &[],
            only: &[],
            needs: None,
            again: true,
        };
        let folder = tempfile::tempdir().unwrap();
        let executable = folder.path().join("tests");
        // Run with names, it passes, unless `c` is one of them.
        let script = "#!/bin/sh\necho 'test a ... ok'\ncase \"$*\" in\n'') echo 'test b ... FAILED'; exit 101;;\n\
                      '--exact b') exit 0;;\n*) exit 101;;\nesac\n";
        // By another process: a program of which a child of this one inherits a descriptor for writing cannot be run.
        let write = ["-c", "printf %s \"$1\" >\"$0\" && chmod +x \"$0\""];
        let written = Command::new("sh")
            .args(write)
            .arg(&executable)
            .arg(script)
            .status();
        assert!(written.unwrap().success());
        let program = TestProgram {
            variant: Some(&AGAIN),
            ..program(executable.to_str().unwrap())
        };
        let ended = program.run(&[]);
        assert_eq!((ended.passed, &*ended.failed), (false, &["b".to_owned()][..]));
        let ended = ended.again(&program);
        assert!(ended.passed);
        assert!(ended.name.ends_with("(again); only alone: b"), "{}", ended.name);
        let failed = program.run(&["c".to_owned()]);
        assert!(!failed.again(&program).passed);
        // Others have to pass beside others.
        let once = TestProgram {
            variant: None,
            ..program
        };
        assert!(!once.run(&[]).again(&once).passed);
    }

    #[test]
    fn what_a_command_prints_keeps_its_order() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; echo two >&2; echo three; exit 3"]);
        let (passed, printed) = Printing::start(&mut command).unwrap().finish().unwrap();
        assert!(!passed);
        assert_eq!(printed, "one\ntwo\nthree\nit ended with exit status: 3\n");
    }

    #[test]
    fn times_are_listed_longest_first() {
        let ended = [("short", true, 1), ("long", false, 20)].map(|(name, passed, seconds)| Ended {
            name: name.to_owned(),
            passed,
            took: Duration::from_secs(seconds),
            failed: Vec::new(),
        });
        assert_eq!(times(&ended), "FAILED    20.0 s  long\npassed     1.0 s  short\n");
    }
}
