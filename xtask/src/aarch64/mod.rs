//! `cargo xtask aarch64`: runs the tests of the sandbox on 64-bit ARM, in a virtual machine that
//! needs no KVM.
//!
//! ```text
//! programs of tests, the binary ─(cargo-zigbuild)─> disk ─┐
//! kernel, system ─(Debian's packages, once)──────> disk ──┴─> QEMU ─(serial console)─> verdict
//!                                image, built inside once ─> disk ─┘
//! ```

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;

use crate::dist::tools::ReleaseTools;
use crate::suite;

use self::console::Transcript;
use self::disk::{Places, Task};

mod console;
mod disk;
mod emulator;

/// Packages whose tests run.
const PACKAGES: [&str; 3] = ["cellblock-jail", "cellblock-guest", "cellblock-interpreter"];
/// The target with the glibc of a release.
const TARGET: &str = "aarch64-unknown-linux-gnu.2.28";
/// Directory for the programs of that target, below cargo's folder.
const BUILT: &str = "aarch64-unknown-linux-gnu/debug";
/// Makes the system and downloads the kernel.
const SYSTEM: &str = "tests/vm/aarch64-system";

/// The Debian release whose kernel runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KernelRelease {
    /// Linux 6.1, with the memory controller of cgroup v1: most tests of limits need it
    Bookworm,
    /// Linux 6.12, with Landlock's scopes and only cgroup v2
    Trixie,
}

/// Builds the tests, runs those with these names (all if there are none), and answers whether all passed.
pub fn run(root: &Path, kernel: KernelRelease, chosen: &[String]) -> Result<bool> {
    let target = crate::target_folder(root);
    let target = std::path::absolute(target)?;
    let places = Places {
        root: root.to_owned(),
        folder: target.join("aarch64-machine"),
        target,
    };
    let tasks = chosen_of(&places, build(&places)?, chosen)?;
    system(&places, kernel)?;
    disk::write(&places, &tasks)?;
    let said = emulator::run(&places, kernel)?;
    let transcript = Transcript::read(&said);
    print!("{transcript}");
    let names: Vec<_> = tasks.iter().map(|task| task.name.as_str()).collect();
    let failed = transcript.failed(&names);
    if !failed.is_empty() {
        println!("FAILED: {}", failed.join(", "));
        println!(
            "the console is in {}",
            places.folder.join("console.log").display()
        );
    }
    Ok(failed.is_empty())
}

/// Compiles everything that runs in the machine.
fn build(places: &Places) -> Result<Vec<Task>> {
    let tools = ReleaseTools::install(&places.target.join("dist-tools"))?;
    let cargo = || -> Result<Command> {
        let mut cargo = tools.command("cargo-zigbuild")?;
        cargo
            .args(["zigbuild", "--locked", "--target", TARGET])
            .current_dir(&places.root)
            .env("CARGO_TARGET_DIR", &places.target)
            // With debugging symbols, the disk would be several times as large.
            .env("CARGO_PROFILE_DEV_STRIP", "symbols");
        Ok(cargo)
    };
    let packages = PACKAGES.iter().flat_map(|package| ["--package", *package]);
    let programs = suite::compile(cargo()?.arg("--tests").args(packages))?.programs;
    suite::compile(cargo()?.args(["--package", "cellblock", "--bin", "cellblock"]))?;
    let mut tasks: Vec<_> = programs.into_iter().map(Task::of_program).collect();
    let cellblock = places.target.join(BUILT).join("cellblock");
    let cellblock = cellblock.display();
    for (name, command) in [
        ("doctor", format!("{cellblock} doctor")),
        ("image", format!("{cellblock} image build")),
        ("run", format!("test \"$({cellblock} run -c 1+1)\" = 2")),
    ] {
        tasks.push(Task {
            name: name.to_owned(),
            folder: PathBuf::from("/"),
            command,
        });
    }
    // The unit tests need no image; the interpreter's programs need one.
    tasks.sort_by_key(Task::order);
    Ok(tasks)
}

fn chosen_of(places: &Places, all: Vec<Task>, chosen: &[String]) -> Result<Vec<Task>> {
    if let Some(unknown) = chosen
        .iter()
        .find(|name| all.iter().all(|task| task.name != **name))
    {
        let names: Vec<_> = all.iter().map(|task| task.name.as_str()).collect();
        bail!(
            "no program `{unknown}` in {}; choose from {}",
            places.root.display(),
            names.join(", ")
        );
    }
    let wanted = |task: &Task| chosen.is_empty() || chosen.contains(&task.name);
    Ok(all.into_iter().filter(wanted).collect())
}

/// Makes the system and the disk of the image, if they are not there from an earlier run.
fn system(places: &Places, kernel: KernelRelease) -> Result<()> {
    let name = kernel.to_possible_value().context("a kernel without a name")?;
    let status = Command::new(places.root.join(SYSTEM))
        .arg(&places.folder)
        .arg(name.get_name())
        .status()
        .with_context(|| format!("start `{SYSTEM}`"))?;
    if !status.success() {
        bail!("`{SYSTEM}` ended with {status}; it needs root, and Debian's mmdebstrap, e2fsprogs and kmod");
    }
    Ok(())
}
