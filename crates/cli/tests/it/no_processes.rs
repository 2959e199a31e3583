//! `cellblock` where hardly a process more can be started: it works or says so, and leaves nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use cellblock_testkit::wait::block_until;
use cellblock_testkit::{Cli, ORDINARY_UID, binary, home, ordinary_home, require};

use crate::support::{BUILD_LIMIT, SetupResult, ended, small_image};

/// A group of this test's own, which bounds the number of its processes and threads.
struct Group(PathBuf);

impl Group {
    fn new() -> Result<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts")?;
        let pids = mounts.lines().find_map(|line| {
            let fields: Vec<_> = line.split(' ').collect();
            (fields[2] == "cgroup" && fields[3].split(',').any(|it| it == "pids")).then_some(fields[1])
        });
        let path = Path::new(pids.context("find the pids controller")?);
        let path = path.join(format!("test-pids-{}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Self(path))
    }

    /// Starts `cellblock run` inside.
    fn run(&self, limit: &str) -> Result<SetupResult> {
        fs::write(self.0.join("pids.max"), limit)?;
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ > \"$0\"; exec \"$@\""]);
        command.arg(self.0.join("cgroup.procs")).arg(binary()?);
        command.args(["run", "--image", small_image()?, "-c", "6 * 7"]);
        ended(command.env("CELLBLOCK_HOME", home()?))
    }

    /// The kernel ends what was in a sandbox, and removes its group, a moment after `cellblock` has ended.
    fn becomes_empty(&self) {
        block_until("nothing is left", || {
            let processes = fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
            let groups = fs::read_dir(&self.0).into_iter().flatten().flatten();
            processes.is_empty()
                && !groups
                    .into_iter()
                    .any(|it| it.file_type().is_ok_and(|it| it.is_dir()))
        });
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// Whether it worked; if not, it said clearly what could not be started.
fn worked(ended: &SetupResult) -> bool {
    if ended.code == 0 {
        assert_eq!(ended.stdout, "42\n");
        return true;
    }
    assert_eq!((ended.code, ended.stdout.as_str()), (75, ""), "{}", ended.stderr);
    let said = &ended.stderr;
    assert!(
        said.starts_with("error: start ") || said.starts_with("error: make "),
        "{said}"
    );
    for part in ["Resource temporarily unavailable", "`ulimit -u`", "`pids.max`"] {
        assert!(said.contains(part), "`{part}` is not in: {said}");
    }
    assert!(!said.contains("panicked"), "{said}");
    false
}

#[test]
fn a_group_without_room_for_processes_is_a_clear_error_that_leaves_nothing() -> Result<()> {
    require!(Root);
    require!(CgroupV1);
    require!(UserNamespaces);
    small_image()?;
    let group = Group::new()?;
    for limit in 1..=14 {
        let worked = worked(&group.run(&limit.to_string())?);
        assert!(limit > 3 || !worked, "{limit} are too few");
        group.becomes_empty();
    }
    assert!(worked(&group.run("max")?), "and it works again");
    group.becomes_empty();
    Ok(())
}

#[test]
fn a_user_without_room_for_processes_has_a_clear_error() -> Result<()> {
    require!(Root);
    require!(OrdinaryUser);
    require!(UserNamespaces);
    let image = small_image()?;
    let built = Cli::new(["image", "build", image]).ordinary_user();
    assert_eq!(built.limit(BUILD_LIMIT).run()?.code(), 0);
    let run = |more: usize| {
        let limit = threads_of(ORDINARY_UID) + more;
        let mut command = Command::new("setpriv");
        command.args([
            "--reuid",
            "65534",
            "--regid",
            "65534",
            "--clear-groups",
            "prlimit",
        ]);
        command.arg(format!("--nproc={limit}:{limit}")).arg(binary()?);
        command.args(["run", "--image", image, "-c", "6 * 7"]);
        let home = ordinary_home()?;
        ended(
            command
                .current_dir("/")
                .env("CELLBLOCK_HOME", &home)
                .env("HOME", home),
        )
    };
    for more in 0..=12 {
        worked(&run(more)?);
    }
    assert!(worked(&run(10_000)?), "and it works again");
    // Below what a sandbox is allowed: the limit of the host is the one that holds.
    assert!(worked(&run(120)?));
    Ok(())
}

/// Threads that count against a user's limit.
fn threads_of(user: u32) -> usize {
    let of_user = |status: &str| {
        let mut lines = status.lines();
        let ids = lines.find_map(|line| line.strip_prefix("Uid:"));
        let threads = lines.find_map(|line| line.strip_prefix("Threads:"));
        let is_theirs = ids?.split_whitespace().next()? == user.to_string();
        is_theirs.then(|| threads?.trim().parse::<usize>().ok())?
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|it| fs::read_to_string(it.path().join("status")).ok())
        .filter_map(|status| of_user(&status))
        .sum()
}
