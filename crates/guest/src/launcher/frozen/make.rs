//! The launcher that freezes a template.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use cellblock_jail::cgroup::Trees;
use cellblock_jail::error::{SyscallResult, chain};
use cellblock_jail::keep::{self, KeepPlan};
use cellblock_jail::protection::Protection;
use cellblock_jail::seccomp::Filters;
use cellblock_jail::seccomp::staged::CompiledFilters;
use cellblock_jail::{Error, Result, fds};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::freeze;
use super::place::{ClaimedFiles, FrozenPlace};
use crate::launcher::control::{FrozenOrder, Launch};
use crate::launcher::template::{FromTemplate, Template};
use crate::launcher::transfer::Process;

/// Maximum time of each step of freezing, which take seconds unless the machine is busy.
const STEP_LIMIT: Duration = Duration::from_mins(10);
/// Priority of a launcher that freezes in the background: a tenth of the processor time of a run that
/// somebody waits for.
const NICE: i32 = 10;
/// The same of a cgroup. Others have 100.
const WEIGHT: &str = "10";
/// The first process that Linux ends when memory is short.
const EXPENDABLE: &str = "1000";
/// Free disk space in bytes without which nothing is written: what runs meanwhile needs some, too.
const FREE_SPACE: u64 = 1 << 30;

/// Makes a frozen template, and thaws it once; returns the launcher's exit code.
pub(in crate::launcher) fn make(launch: &Launch, place: &FrozenPlace, yields: bool) -> Result<i32> {
    if yields {
        let _unavailable = rustix::process::nice(NICE);
    }
    let _unavailable = std::fs::write("/proc/self/oom_score_adj", EXPENDABLE);
    let Some(files) = place.claim()? else {
        return Ok(0);
    };
    check_space(&files).inspect_err(|_| place.clear())?;
    let trees = Trees::prepare(&Trees::own_name(), launch.ids.root());
    for path in trees.paths().filter(|_| yields) {
        // Between cgroups, their weights count, and not the priorities of their processes.
        let _unavailable = std::fs::write(path.join("cpu.weight"), WEIGHT);
    }
    let made = match make_in_keep(launch, place, &files, &trees) {
        // As for other launchers; what is frozen does not depend on it.
        Err(Error::Missing {
            protection: Protection::OwnUserId,
            ..
        }) => {
            let shared = Launch {
                ids: launch.ids.without_namespaces(),
                ..launch.clone()
            };
            make_in_keep(&shared, place, &files, &trees)
        }
        made => made,
    };
    trees.remove_all();
    match made.and_then(|()| place.publish()) {
        Ok(()) => Ok(0),
        // A later start may have what this one lacks, such as an image that was removed meanwhile.
        Err(error) if matches!(error, Error::Missing { .. }) || !launch.image.directory.is_dir() => {
            place.clear();
            Err(error)
        }
        Err(error) => {
            place.refuse(&chain(&error));
            Err(error)
        }
    }
}

fn check_space(files: &ClaimedFiles) -> Result<()> {
    let found = rustix::fs::fstatvfs(&files.memory).during("look at the free disk space")?;
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    if free >= FREE_SPACE {
        return Ok(());
    }
    Err(Error::Child(format!(
        "freeze a template: {} MiB of disk space are free, but {} MiB are required; free some disk space",
        free >> 20,
        FREE_SPACE >> 20
    )))
}

fn make_in_keep(launch: &Launch, place: &FrozenPlace, files: &ClaimedFiles, trees: &Trees) -> Result<()> {
    let filters = Filters::compile()?;
    let staged = CompiledFilters::compile(&filters)?;
    let plan = KeepPlan {
        ids: launch.ids,
        tree: crate::launcher::tree(launch, &staged),
    };
    let (ours, theirs) = fds::packet_pair()?;
    let mut open = vec![
        theirs.as_raw_fd(),
        files.memory.as_raw_fd(),
        files.manifest.as_raw_fd(),
    ];
    open.extend(trees.descriptors());
    let child = keep::start(&plan, trees, &open, || {
        if matches!(launch.frozen, Some(FrozenOrder::Freeze { yields: true, .. })) {
            // The keep has its own session, whose priority counts where Linux groups processes by session.
            let _unavailable = std::fs::write("/proc/self/autogroup", NICE.to_string());
        }
        let made = freeze_first(launch, place, files, &staged).and_then(|()| try_out(launch, place));
        fds::send(&theirs, &made.map_err(|error| chain(&error)), &[])
    })?;
    drop(theirs);
    let told = fds::receive::<Result<(), String>>(&ours)?;
    child.wait()?;
    match told {
        Some((made, _)) => made.map_err(Error::Child),
        None => Err(Error::Child("the keep of the frozen template ended".into())),
    }
}

fn freeze_first(
    launch: &Launch,
    place: &FrozenPlace,
    files: &ClaimedFiles,
    staged: &CompiledFilters,
) -> Result<()> {
    let template = Template::start(launch, staged, true)?;
    let pid = match first_packet(&template)? {
        FromTemplate::Still { pid } => pid,
        FromTemplate::Broken { error } => return Err(Error::Child(error)),
        _ => return Err(Error::Child("the template sent an unexpected message".into())),
    };
    let pidfd = Pid::from_raw(pid)
        .ok_or(rustix::io::Errno::SRCH)
        .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()))
        .during("open the template")?;
    let process = Process {
        pid,
        pidfd,
        inside: pid.unsigned_abs(),
    };
    let written = freeze::write(&process, &place.key, files);
    let _ended = pidfd_send_signal(&process.pidfd, Signal::KILL);
    template.child.kill();
    template.child.wait()?;
    written
}

/// Thaws it as later starts do: a machine on which that fails keeps none.
fn try_out(launch: &Launch, place: &FrozenPlace) -> Result<()> {
    let template = Template::thaw(launch, place)?;
    let outcome = match first_packet(&template) {
        Ok(FromTemplate::Ready { failed, .. }) if failed.is_empty() => Ok(()),
        // Every run would report it, also one that does not use the module.
        Ok(FromTemplate::Ready { failed, .. }) => Err(Error::Child(failed.join("; "))),
        Ok(FromTemplate::Broken { error }) => Err(Error::Child(error)),
        Ok(_) => Err(Error::Child(
            "the thawed template sent an unexpected message".into(),
        )),
        Err(error) => Err(error),
    };
    template.child.kill();
    let status = template.child.wait()?;
    match outcome {
        // The number of the call that failed, after which nobody is left to describe it.
        Err(_) if libc::WIFEXITED(status) && libc::WEXITSTATUS(status) != 0 => Err(Error::Child(format!(
            "this Linux refused system call {} while the template was thawed",
            libc::WEXITSTATUS(status)
        ))),
        outcome => outcome,
    }
}

fn first_packet(template: &Template) -> Result<FromTemplate> {
    wait_for(&template.socket)?;
    match fds::receive(&template.socket)? {
        Some((message, _)) => Ok(message),
        None => Err(Error::Child("the template ended".into())),
    }
}

fn wait_for(socket: &OwnedFd) -> Result<()> {
    let limit = Timespec::try_from(STEP_LIMIT).unwrap_or_default();
    let mut polled = [PollFd::new(socket, PollFlags::IN)];
    loop {
        match poll(&mut polled, Some(&limit)) {
            Ok(0) => return Err(Error::Child("the template takes too long".into())),
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).during("wait for the template"),
        }
    }
}
