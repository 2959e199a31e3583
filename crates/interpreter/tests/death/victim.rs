//! Processes to kill, and how to find them below a host.

use std::fs;
use std::path::PathBuf;

use cellblock_testkit::wait::until;
use rustix::process::{Pid, Signal, kill_process};

/// A part of Cellblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Victim {
    Kernel,
    Guest,
    Template,
    Keep,
    Launcher,
}

/// A process of the host.
#[derive(Clone, Debug)]
pub(crate) struct HostProcess {
    pub(crate) pid: u32,
    parent: u32,
    name: String,
}

fn processes() -> Vec<HostProcess> {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        (fields[0] != "Z").then_some(())?;
        Some(HostProcess {
            pid,
            parent: fields[1].parse().ok()?,
            name: name.to_owned(),
        })
    })
    .collect()
}

fn pid_namespace(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/ns/pid")).ok()
}

impl Victim {
    /// Finds it below a host, whose one session has the only kernel; without a kernel, the guest is
    /// that of the spare room.
    pub(crate) fn find(self, host: u32) -> Option<HostProcess> {
        let all = processes();
        let child = |parent: u32, name: &str| {
            all.iter()
                .find(|it| it.parent == parent && it.name.starts_with(name))
        };
        let launcher = all.iter().filter(|it| it.parent == host).find(|it| {
            fs::read(format!("/proc/{}/cmdline", it.pid))
                .is_ok_and(|line| line.starts_with(b"cellblock-launcher\0"))
        })?;
        let keep = child(launcher.pid, "cellblock-keep");
        let template = keep.and_then(|keep| child(keep.pid, "python"));
        // Kernels outlive their template, and are the keep's then.
        let parents = [keep, template].map(|parent| parent.map(|it| it.pid));
        let kernel = all
            .iter()
            .find(|it| parents.contains(&Some(it.parent)) && it.name == "cellblock-py");
        match self {
            Self::Launcher => Some(launcher),
            Self::Keep => keep,
            Self::Template => template,
            Self::Kernel => kernel,
            Self::Guest => all
                .iter()
                .filter(|it| Some(it.parent) == keep.map(|keep| keep.pid) && it.name == "cellblock-guest")
                .find(|it| kernel.is_none_or(|kernel| pid_namespace(it.pid) == pid_namespace(kernel.pid))),
        }
        .cloned()
    }
}

impl HostProcess {
    /// Kills it and waits until it is dead, so that what begins afterwards does not meet it dying.
    /// A launcher takes its keep along.
    pub(crate) async fn kill(&self) {
        let below = processes()
            .into_iter()
            .find(|it| it.parent == self.pid && it.name == "cellblock-keep");
        kill(self.pid);
        for process in [Some(self), below.as_ref()].into_iter().flatten() {
            until("it ends", || !lives(process.pid)).await;
        }
    }
}

/// Whether a process has not ended yet; one that nobody has collected has.
pub(crate) fn lives(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.split_whitespace().next());
    state.is_some_and(|state| state != "Z" && state != "X")
}

/// One that has just ended by itself is as good.
pub(crate) fn kill(pid: u32) {
    let pid = Pid::from_raw(pid.cast_signed()).unwrap();
    let _ = kill_process(pid, Signal::KILL);
}
