//! Building all tests, and running their programs side by side.
//!
//! `cargo test` runs one program after another, and many of ours mostly wait: for deadlines, and
//! for processes to start and end. So one more runs at once than there are processors.

mod build;
mod kernel;
mod processor;
mod skipped;
mod variants;

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use parking_lot::{Mutex, MutexGuard};

pub use self::build::Compiler;
use self::build::{BuiltPrograms, WHAT, cargo};
pub(crate) use self::build::{compile, of_package};
pub(crate) use self::skipped::{forget_skips, skips};
use self::variants::{VARIANTS, Variant};

/// Programs that take longest, longest first: one that began last would run alone at the end. Those
/// with emulated machines, which leave little of the processors, are apart. Beside those that need
/// over a minute of processors stands why.
const LONGEST: [&str; 21] = [
    "cellblock ordinary_python (suites)", // suites of other projects, in sandboxes
    "cellblock-interpreter conformance (microvm)", // every instruction is emulated
    "cellblock it",                       // builds images and a container
    "cellblock-interpreter containment",  // hundreds of attacks, some up to a limit of memory or time
    "cellblock-gateway rest",             // servers, and Chromium for what browsers are kept from
    "cellblock plain",                    // charts, tables and exceptions through every door
    "cellblock clients",                  // clients of Python and Node, which start for each test
    "cellblock-walls firecracker",        // emulated, too
    "cellblock mcp",                      // clients of Python and Node
    "cellblock-interpreter containment (microvm)", // emulated
    "cellblock-walls microvm (machines)", // emulated
    "cellblock-interpreter containment (gvisor)", // gVisor handles each system call
    "cellblock it (warm)",
    "cellblock-dialects it",
    "cellblock gateway",
    "cellblock-interpreter conformance (gvisor)",
    "cellblock session",
    "cellblock-interpreter death",
    "cellblock-interpreter conformance (remote)",
    "cellblock-interpreter conformance",
    "kernel test_last_figures", // kernels without and with libraries, each of which imports Matplotlib
];

/// Maximum number of tests of one run that may pass only alone, apart from those in machines. Each is
/// a fault to be mended, but not of the change that happened to meet it.
const UNSETTLED: usize = 2;

/// A program of tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TestProgram {
    pub(crate) package: String,
    pub(crate) target: String,
    pub(crate) executable: PathBuf,
    /// Arguments before those that choose among its tests.
    pub(crate) arguments: Vec<String>,
    /// The package's directory, in which its tests run.
    pub(crate) folder: PathBuf,
    /// Whether its tests are those of a library or a program itself.
    pub(crate) is_unit: bool,
    /// Variant with which it runs, if it is a further run.
    pub(crate) variant: Option<&'static Variant>,
    /// Whether a further run runs all of its tests.
    pub(crate) is_whole: bool,
    /// Part of the names of its tests, if not all of them run.
    pub(crate) filter: Option<String>,
}

/// Result of a program.
#[derive(Debug)]
struct ProgramReport {
    name: String,
    passed: bool,
    took: Duration,
    /// Processor time, with that of the processes that it has waited for.
    processor: Duration,
    /// Names of the tests that failed.
    failed: Vec<String>,
}

/// The programs of all tests.
#[derive(Debug)]
pub struct Suite(Vec<TestProgram>);

/// The tests that are to run.
#[derive(Clone, Debug, Default)]
pub struct TestSelection {
    /// Package, if only one is tested; `kernel` is the guest's Python.
    pub package: Option<String>,
    /// Part of the names of the tests, if not all of them run.
    pub filter: Option<String>,
}

impl TestSelection {
    pub(crate) fn is_all(&self) -> bool {
        self.package.is_none() && self.filter.is_none()
    }

    pub(crate) fn is_kernel(&self) -> bool {
        self.package.as_deref() == Some(kernel::PACKAGE)
    }
}

/// Builds the programs of selected tests, and returns the warnings of a linting compiler.
pub fn build(root: &Path, compiler: Compiler, selection: &TestSelection) -> Result<(Suite, Vec<String>)> {
    let what = match &selection.package {
        Some(package) => of_package(package),
        None => WHAT.to_vec(),
    };
    let mut building = cargo(root, compiler)?;
    let BuiltPrograms {
        mut programs,
        mut warnings,
    } = compile(building.args(["test", "--no-run"]).args(&what))?;
    if compiler == Compiler::Linting {
        // Apart from the tests: beside a choice of targets, examples would be built as tests, and
        // tests run them as they are.
        let mut building = cargo(root, compiler)?;
        warnings.extend(compile(building.args(["build", "--benches"]).args(&what))?.warnings);
    }
    if !selection.is_all() {
        for program in &mut programs {
            program.filter.clone_from(&selection.filter);
        }
        return Ok((Suite(programs), warnings));
    }
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
    programs.retain(|program| {
        !VARIANTS
            .iter()
            .any(|it| it.is_only_run && it.program == program.name())
    });
    programs.extend(again);
    programs.extend(kernel::programs(root, None)?);
    programs.sort_by_key(|program| {
        let at = LONGEST.iter().position(|name| *name == program.name());
        at.unwrap_or(LONGEST.len())
    });
    Ok((Suite(programs), warnings))
}

/// Runs the examples in the documentation.
pub fn documentation(root: &Path, compiler: Compiler) -> Result<()> {
    let status = cargo(root, compiler)?
        .args(["test", "--doc"])
        .args(WHAT)
        .status()?;
    if !status.success() {
        bail!("examples of the documentation failed: cargo ended with {status}");
    }
    Ok(())
}

impl Suite {
    /// Returns the unit tests of the guest's Python; those with a text in their names, if one is given.
    pub(crate) fn of_kernel(root: &Path, filter: Option<&str>) -> Result<Self> {
        Ok(Self(kernel::programs(root, filter)?))
    }

    /// Returns the unit tests, and the others.
    pub(crate) fn split_unit(self) -> (Self, Self) {
        let (unit, others) = self.0.into_iter().partition(|program| program.is_unit);
        (Self(unit), Self(others))
    }

    /// Returns the runs of which only a part runs otherwise.
    pub(crate) fn walls(self) -> Self {
        let all = self.0.into_iter();
        let walls = all.filter(|program| program.variant.is_some_and(|variant| variant.part.is_some()));
        let whole = walls.map(|program| TestProgram {
            is_whole: true,
            ..program
        });
        Self(whole.collect())
    }

    /// Runs all programs, and prints what each has printed once it has ended.
    pub fn run(self) -> Result<()> {
        let lanes = thread::available_parallelism().map_or(1, std::num::NonZero::get) + 1;
        let all = self.0.len();
        let queue = Mutex::new(VecDeque::from(self.0));
        let ended: Mutex<Vec<(TestProgram, ProgramReport)>> = Mutex::default();
        thread::scope(|scope| {
            for _ in 0..lanes {
                scope.spawn(|| {
                    while let Some(program) = { lock(&queue).pop_front() } {
                        let one = program.run(&[]);
                        let mut ended = lock(&ended);
                        eprintln!("{} ({} of {all})", one.line(), ended.len() + 1);
                        ended.push((program, one));
                    }
                });
            }
        });
        let ended = ended.into_inner();
        let unsettled = ended.iter().filter(|(program, _)| !program.may_run_again());
        let unsettled: usize = unsettled.map(|(_, one)| one.failed.len()).sum();
        let ended: Vec<_> = ended
            .into_iter()
            .map(|(program, one)| {
                if program.may_run_again() || unsettled <= UNSETTLED {
                    one.again(&program)
                } else {
                    one
                }
            })
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
    /// Whether tests that fail beside others may pass alone, however many.
    fn may_run_again(&self) -> bool {
        self.variant.is_some_and(|variant| variant.again)
    }

    fn name(&self) -> String {
        let how = self
            .variant
            .map_or_else(String::new, |variant| format!(" ({})", variant.name));
        format!("{} {}{how}", self.package, self.target)
    }

    /// Runs the tests with these names; all of them if there is none.
    fn run(&self, tests: &[String]) -> ProgramReport {
        let start = Instant::now();
        let (passed, printed) = self
            .output(tests)
            .unwrap_or_else(|error| (false, format!("{error:#}\n")));
        let (printed, processor) = processor::read(&printed);
        let (name, took) = (self.name(), start.elapsed());
        println!("\n== {name}: {:.1} s ==\n{printed}", took.as_secs_f64());
        let failed = failed_tests(&printed);
        ProgramReport {
            name,
            passed,
            took,
            processor,
            failed,
        }
    }

    fn output(&self, tests: &[String]) -> Result<(bool, String)> {
        let mut command = processor::measured(&self.executable);
        command
            .args(&self.arguments)
            .current_dir(&self.folder)
            // As cargo does it.
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .env("CARGO_PKG_NAME", &self.package)
            .stdin(Stdio::null());
        let mut only: Vec<&str> = self.filter.as_deref().into_iter().collect();
        if let Some(variant) = self.variant {
            command.envs(variant.variables.iter().copied());
            only.extend(variant.only);
            if let Some(part) = variant.part.as_ref().filter(|_| !self.is_whole) {
                command.envs(part.variables.iter().copied());
                only.extend(part.only);
            }
        }
        if tests.is_empty() {
            command.args(only);
        } else {
            command.arg("--exact").args(tests);
        }
        LoggedCommand::start(&mut command)?.finish()
    }
}

impl ProgramReport {
    fn line(&self) -> String {
        let verdict = if self.passed { "passed" } else { "FAILED" };
        format!(
            "{verdict} {:>7.1} s {:>6.1} s of processors  {}",
            self.took.as_secs_f64(),
            self.processor.as_secs_f64(),
            self.name
        )
    }

    /// Runs the tests that failed once more, and says which passed only then. No other program of
    /// tests may run.
    fn again(mut self, program: &TestProgram) -> Self {
        if self.failed.is_empty() {
            return self;
        }
        let alone = program.run(&self.failed);
        self.took += alone.took;
        self.processor += alone.processor;
        if alone.passed {
            self.passed = true;
            let _ = write!(self.name, "; only alone: {}", self.failed.join(", "));
        }
        self
    }
}

/// A command that prints into a file: both streams stay in order, and a child that outlives it
/// holds no pipe that somebody reads.
#[derive(Debug)]
pub(crate) struct LoggedCommand {
    running: Child,
    file: File,
}

impl LoggedCommand {
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

/// The names of tests that failed, in what a program of tests prints.
fn failed_tests(printed: &str) -> Vec<String> {
    let failed = |line: &str| {
        let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
        Some(name.to_owned())
    };
    printed.lines().filter_map(failed).collect()
}

fn times(ended: &[ProgramReport]) -> String {
    let mut ended: Vec<_> = ended.iter().collect();
    ended.sort_by_key(|one| std::cmp::Reverse(one.took));
    ended.into_iter().map(|one| one.line() + "\n").collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(executable: &str) -> TestProgram {
        TestProgram {
            package: "package".to_owned(),
            target: executable.to_owned(),
            executable: executable.into(),
            arguments: Vec::new(),
            folder: "/".into(),
            is_unit: false,
            variant: None,
            is_whole: false,
            filter: None,
        }
    }

    /// Writes a program, by another process: one of which a child of this one inherits a descriptor
    /// for writing cannot be run.
    fn write_program(executable: &Path, script: &str) {
        let write = ["-c", "printf %s \"$1\" >\"$0\" && chmod +x \"$0\""];
        let written = Command::new("sh")
            .args(write)
            .arg(executable)
            .arg(script)
            .status();
        assert!(written.unwrap().success());
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
            part: None,
            is_only_run: false,
            needs: None,
            again: true,
        };
        let folder = tempfile::tempdir().unwrap();
        let executable = folder.path().join("tests");
        // Run with names, it passes, unless `c` is one of them.
        let script = "#!/bin/sh\necho 'test a ... ok'\ncase \"$*\" in\n\
                      '') echo 'test b ... FAILED'; exit 101;;\n\
                      '--exact b') exit 0;;\n*) exit 101;;\nesac\n";
        write_program(&executable, script);
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
        assert!(program.may_run_again());
    }

    #[test]
    fn a_run_has_few_tests_that_pass_only_alone() {
        let folder = tempfile::tempdir().unwrap();
        for (tests, passes) in [("a b", true), ("a b c", false)] {
            let executable = folder.path().join(tests.len().to_string());
            let script = format!(
                "#!/bin/sh\n[ $# -gt 0 ] && exit\n\
                 for t in {tests}; do echo \"test $t ... FAILED\"; done\nexit 101\n"
            );
            write_program(&executable, &script);
            let program = program(executable.to_str().unwrap());
            assert_eq!(Suite(vec![program]).run().is_ok(), passes, "{tests}");
        }
    }

    #[test]
    fn what_a_command_prints_keeps_its_order() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; echo two >&2; echo three; exit 3"]);
        let (passed, printed) = LoggedCommand::start(&mut command).unwrap().finish().unwrap();
        assert!(!passed);
        assert_eq!(printed, "one\ntwo\nthree\nit ended with exit status: 3\n");
    }

    #[test]
    fn times_are_listed_longest_first() {
        let ended = [("short", true, 1), ("long", false, 20)].map(|(name, passed, seconds)| ProgramReport {
            name: name.to_owned(),
            passed,
            took: Duration::from_secs(seconds),
            processor: Duration::from_secs(seconds / 2),
            failed: Vec::new(),
        });
        assert_eq!(
            times(&ended),
            "FAILED    20.0 s   10.0 s of processors  long\npassed     1.0 s    0.0 s of processors  short\n"
        );
    }
}
