//! The disk with the tests: the repository's files, the programs, and the list of what to run.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::copy;
use crate::suite::TestProgram;

use super::BUILT;

/// The first program of the machine.
const FIRST: &str = "tests/vm/aarch64-init.sh";
/// Room for the programs of tests and for what they write.
const SIZE: &str = "3G";

/// Paths on this machine. The tests look for some of them, so they have the same paths in the virtual one.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) root: PathBuf,
    /// Cargo's folder.
    pub(super) target: PathBuf,
    /// The disks and the kernel.
    pub(super) folder: PathBuf,
}

/// Something that runs in the machine.
#[derive(Debug, Clone)]
pub(super) struct Task {
    pub(super) name: String,
    pub(super) folder: PathBuf,
    /// A line of shell.
    pub(super) command: String,
}

impl Task {
    pub(super) fn of_program(program: TestProgram) -> Self {
        let package = program.package.trim_start_matches("cellblock-");
        // The unit tests of a library have its name.
        let target = match program.target.trim_start_matches("cellblock_") {
            target if target == package => "unit",
            _ => &program.target,
        };
        Self {
            name: format!("{package}-{target}"),
            command: format!("{} --test-threads=2", program.executable.display()),
            folder: program.folder,
        }
    }

    /// Says where it belongs in the order: what needs no image, the image, what needs one.
    pub(super) fn order(&self) -> usize {
        match self.name.as_str() {
            "doctor" => 0,
            "image" => 2,
            "run" => 3,
            name if name.starts_with("interpreter-") && name != "interpreter-unit" => 4,
            _ => 1,
        }
    }
}

/// Writes the disk anew.
pub(super) fn write(places: &Places, tasks: &[Task]) -> Result<()> {
    let files = places.folder.join("tests");
    if files.exists() {
        fs::remove_dir_all(&files).with_context(|| format!("remove `{}`", files.display()))?;
    }
    let target = files.join("target");
    let programs = target.join(BUILT);
    fs::create_dir_all(programs.join("deps"))?;
    fs::create_dir_all(target.join("aarch64-unknown-linux-gnu/tmp"))?;
    copy_tracked(&places.root, &files.join("workspace"))?;
    copy(&places.root.join(FIRST), &files.join("init.sh"))?;
    // Tests find cargo's folder by it.
    copy(&places.target.join("CACHEDIR.TAG"), &target.join("CACHEDIR.TAG"))?;
    let built = places.target.join(BUILT);
    copy(&built.join("cellblock"), &programs.join("cellblock"))?;
    for task in tasks {
        let program = task.command.split(' ').next().unwrap_or_default();
        if let Ok(program) = Path::new(program).strip_prefix(built.join("deps")) {
            copy(
                &built.join("deps").join(program),
                &programs.join("deps").join(program),
            )?;
        }
    }
    let shell = format!(
        "workspace='{}'\ntarget='{}'\n",
        places.root.display(),
        places.target.display()
    );
    fs::write(files.join("places"), shell)?;
    fs::write(files.join("plan"), plan(tasks)?)?;
    // A company's own certificates, without which the machine could download nothing.
    if let Some(certificates) = std::env::var_os("SSL_CERT_FILE") {
        copy(Path::new(&certificates), &files.join("certificates.crt"))?;
    }
    let image = places.folder.join("tests.img");
    let _ = fs::remove_file(&image);
    let made = Command::new("mke2fs")
        .args(["-q", "-t", "ext4", "-d"])
        .arg(&files)
        .arg(&image)
        .arg(SIZE)
        .status()
        .context("start mke2fs, of Debian's e2fsprogs")?;
    if !made.success() {
        bail!("mke2fs ended with {made}");
    }
    fs::remove_dir_all(&files).with_context(|| format!("remove `{}`", files.display()))
}

/// A line for each task: its name, its directory, and the command.
fn plan(tasks: &[Task]) -> Result<String> {
    let mut plan = String::new();
    for task in tasks {
        writeln!(plan, "{} {} {}", task.name, task.folder.display(), task.command)?;
    }
    Ok(plan)
}

/// Copies the files that git tracks: tests read some of them.
fn copy_tracked(root: &Path, to: &Path) -> Result<()> {
    let listed = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(root)
        .output()
        .context("start git")?;
    let listed = String::from_utf8(listed.stdout).context("read what git lists")?;
    for name in listed.split_terminator('\0') {
        let from = root.join(name);
        // One that is deleted and not committed is still listed.
        if from.is_file() {
            let to = to.join(name);
            fs::create_dir_all(to.parent().unwrap_or(&to))?;
            copy(&from, &to)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(package: &str, target: &str) -> Task {
        Task::of_program(TestProgram {
            package: package.to_owned(),
            target: target.to_owned(),
            executable: "/target/deps/program-1".into(),
            arguments: Vec::new(),
            folder: "/here".into(),
            is_unit: false,
            variant: None,
            is_whole: false,
            filter: None,
        })
    }

    #[test]
    fn a_program_is_named_by_its_package_and_target() {
        assert_eq!(task("cellblock-jail", "cellblock_jail").name, "jail-unit");
        assert_eq!(task("cellblock-jail", "rooms").name, "jail-rooms");
    }

    #[test]
    fn programs_that_need_the_image_run_after_it_is_built() {
        let order = |package, target| task(package, target).order();
        assert!(order("cellblock-jail", "rooms") < 2);
        assert!(order("cellblock-interpreter", "cellblock_interpreter") < 2);
        assert!(order("cellblock-interpreter", "it") > 2);
    }

    #[test]
    fn the_plan_has_a_line_for_each_program() {
        let plan = plan(&[task("cellblock-jail", "rooms")]).unwrap();
        assert_eq!(plan, "jail-rooms /here /target/deps/program-1 --test-threads=2\n");
    }
}
