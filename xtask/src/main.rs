//! `cargo xtask`: the developer commands of this workspace.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use xtask::aarch64::KernelRelease;
use xtask::ci::Step;
use xtask::dist::{self, Machine, ReleasePart};
use xtask::suite::TestSelection;
use xtask::{aarch64, bench, ci, footprint, generate, judges, seccomp, soak, tidy, workspace_root};

/// Developer commands of the Cellblock workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs the given steps, or all of them, and reports every failure at the end
    Ci {
        /// The steps to run
        steps: Vec<Step>,
        /// With `test`: run only the tests of a package, such as `cellblock-mcp`
        #[arg(long, short, value_name = "CRATE", requires = "steps")]
        package: Option<String>,
        /// With `test`: run only tests whose names contain this
        #[arg(long, short, value_name = "TEXT", requires = "steps")]
        filter: Option<String>,
    },
    /// Measures Cellblock beside its peers; arguments go to the benchmark (`--help` lists them)
    Bench {
        /// Arguments of the benchmark
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Makes, runs and destroys sessions with the whole default image, and fails if anything is left or grows
    Soak {
        /// Number of rounds
        #[arg(long, default_value_t = 1000)]
        rounds: u32,
    },
    /// Runs suites of other projects against a server, and writes their numbers into `docs/judges.md`
    Judges {
        /// The judges to run; all of them if none is named
        names: Vec<String>,
    },
    /// Checks the rules that no compiler checks: imports, cycles, sizes, docs, phrases, unsafe, names, paths
    Tidy,
    /// Builds a release and prints how big it and the tree are: packages, files, compiled units, bytes
    Footprint {
        /// Fails if one exceeds its line of `xtask/footprint.txt` by more than 5 %
        #[arg(long)]
        check: bool,
    },
    /// Writes the system call filter for containers from a container engine's default
    Seccomp {
        /// The default, such as `/usr/share/containers/seccomp.json` of Debian's
        /// `golang-github-containers-common`
        default: std::path::PathBuf,
    },
    /// Builds what is released, into `dist/`, and tries it
    Dist {
        /// The parts to build; all of them if none is named
        parts: Vec<ReleasePart>,
        /// The machine to build for; by default this one
        #[arg(long)]
        target: Option<Machine>,
    },
    /// Runs the tests of the sandbox on 64-bit ARM, in a virtual machine
    Aarch64 {
        /// The programs of tests to run, such as `jail-rooms`; all of them if none is named
        programs: Vec<String>,
        /// The Debian release whose kernel runs
        #[arg(long, value_enum, default_value = "bookworm")]
        kernel: KernelRelease,
    },
    /// Writes the files that are generated from code
    Generate {
        /// Only tells which files are stale
        #[arg(long)]
        check: bool,
    },
}

fn main() -> Result<ExitCode> {
    let root = workspace_root();
    let passed = match Args::parse().command {
        Command::Ci {
            steps,
            package,
            filter,
        } => ci::run(&root, &steps, &TestSelection { package, filter }),
        Command::Bench { arguments } => bench::run(&root, &arguments)?,
        Command::Soak { rounds } => soak::run(&root, rounds)?,
        Command::Judges { names } => judges::run(&root, &names)?,
        Command::Tidy => tidy::run(&root)?,
        Command::Footprint { check } => footprint::run(&root, check)?,
        Command::Seccomp { default } => seccomp::write(&root, &default)?,
        Command::Dist { parts, target } => dist::run(&root, target, &parts)?,
        Command::Aarch64 { programs, kernel } => aarch64::run(&root, kernel, &programs)?,
        Command::Generate { check: true } => generate::check(&root)?,
        Command::Generate { check: false } => generate::write(&root)?,
    };
    Ok(if passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
