//! The launcher: a companion process of the host that creates the keep and, inside it, rooms and
//! kernels.
//!
//! The host starts it by executing itself under the name [`NAME`], with a packet socket as standard
//! input. It has two halves. The outer one stays in the host's namespaces to write id maps, create
//! cgroups, and clean up at the end. The inner one (`keeper`) is the first process of the keep and
//! serves the host's requests. When the host exits, the socket closes, the keep ends, and with it
//! every room.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;

use cellblock_jail::cgroup::{self, Trees};
use cellblock_jail::error::chain;
use cellblock_jail::keep::{self, KeepPlan};
use cellblock_jail::mounts::{HostBind, KeepTree};
use cellblock_jail::protection::{Demand, Protection};
use cellblock_jail::room::Rooms;
use cellblock_jail::seccomp::Filters;
use cellblock_jail::seccomp::staged::CompiledFilters;
use cellblock_jail::{Error, Result, fds, probe, walled};

use control::{FrozenOrder, Launch, LauncherEvent};

mod adopt;
mod bare;
pub mod control;
pub mod frozen;
mod keeper;
pub mod mounter;
mod template;
mod transfer;

/// Name (`argv[0]`) under which a host executes itself to become a launcher.
pub const NAME: &str = "cellblock-launcher";
/// The name of one that freezes a template, so that people can tell both apart.
pub const FREEZER_NAME: &str = "cellblock-freezer";

/// Runs the launcher on standard input; returns its exit code.
pub fn run() -> i32 {
    // SAFETY: standard input is open: the host passes the control socket there, and nothing else in
    // this process uses it.
    let control = unsafe { OwnedFd::from_raw_fd(0) };
    let launch = match fds::receive::<Launch>(&control) {
        Ok(Some((launch, _))) => launch,
        Ok(None) => return 0,
        Err(error) => return fail(&error),
    };
    match launch_keep(&control, &launch) {
        Ok(code) => code,
        Err(error) => {
            let _ = fds::send(&control, &refused(&error), &[]);
            78
        }
    }
}

fn refused(error: &Error) -> LauncherEvent {
    LauncherEvent::Refused {
        error: chain(error),
        missing_protection: matches!(error, Error::Missing { .. }),
    }
}

fn fail(error: &Error) -> i32 {
    cellblock_jail::process::report(&format!("launcher: {}", chain(error)));
    70
}

fn launch_keep(control: &OwnedFd, launch: &Launch) -> Result<i32> {
    // Ctrl-C in a terminal is for the host, which interrupts cells itself.
    let _ = rustix::process::setsid();
    // A failure means fewer rooms, not weaker ones.
    if let Err(error) = cellblock_jail::confine::open_many_files() {
        let _ = fail(&error);
    }
    if launch.walled {
        // Nothing of this machine outlives it, and the wall limits its memory.
        walled::declare()?;
        let trees = Trees::default();
        let status = bare::keep_and_wait(control, launch, &trees, "gVisor replaces namespaces")?;
        return Ok(exit_code(status));
    }
    if let Some(FrozenOrder::Freeze { place, yields }) = &launch.frozen {
        return frozen::make(launch, place, *yields);
    }
    cgroup::sweep();
    let trees = Trees::prepare(&Trees::own_name(), launch.ids.root());
    let outcome = match confine_and_wait(control, launch, &trees, None) {
        // The id map is the first step of creating a keep. Rooms also work without it, and every
        // report says what they lack.
        Err(Error::Missing {
            protection: Protection::OwnUserId,
            reason,
        }) if launch.demands.of(Protection::OwnUserId) != Demand::Strict => {
            let shared = Launch {
                ids: launch.ids.without_namespaces(),
                ..launch.clone()
            };
            confine_and_wait(control, &shared, &trees, Some(reason))
        }
        other => other,
    };
    trees.remove_all();
    Ok(exit_code(outcome?))
}

fn exit_code(status: i32) -> i32 {
    if libc::WIFEXITED(status) {
        libc::WEXITSTATUS(status)
    } else {
        128 + libc::WTERMSIG(status)
    }
}

/// Uses namespaces, unless the policy disables them, or the machine lacks them and the policy
/// permits that.
///
/// `shared_id` says why rooms have no ids of their own although the user should have some.
fn confine_and_wait(
    control: &OwnedFd,
    launch: &Launch,
    trees: &Trees,
    shared_id: Option<String>,
) -> Result<i32> {
    if cellblock_jail::bare::is_wanted(&launch.demands)? {
        return bare::keep_and_wait(control, launch, trees, "the policy disables namespaces");
    }
    match keep_and_wait(control, launch, trees, shared_id) {
        Err(Error::Missing {
            protection:
                protection
                @ (Protection::UserNamespace | Protection::MountNamespace | Protection::CgroupNamespace),
            reason,
        }) if launch.demands.of(protection) != Demand::Strict => {
            // Each protection names its own remedy.
            let reason = reason.split("; ").next().unwrap_or_default();
            bare::keep_and_wait(control, launch, trees, reason)
        }
        other => other,
    }
}

fn keep_and_wait(
    control: &OwnedFd,
    launch: &Launch,
    trees: &Trees,
    shared_id: Option<String>,
) -> Result<i32> {
    let mut report = probe::report(&launch.demands, launch.ids, trees)?;
    if let Some(reason) = shared_id {
        let state = launch.demands.lacking(Protection::OwnUserId, reason)?;
        report.note(Protection::OwnUserId, state);
    }
    let filters = Filters::compile()?;
    let staged = CompiledFilters::compile(&filters)?;
    let plan = KeepPlan {
        ids: launch.ids,
        tree: tree(launch, &staged),
    };
    let mut keep_open = vec![control.as_raw_fd()];
    keep_open.extend(trees.descriptors());
    let child = keep::start(&plan, trees, &keep_open, || {
        let rooms = Rooms {
            ids: launch.ids,
            trees,
            filters: &filters,
            demands: &launch.demands,
            is_image: launch.image.is_root,
        };
        let kept = keep::name_host(&launch.demands, &mut report)
            .and_then(|()| keeper::Keeper::new(control, launch, &staged, rooms));
        match kept {
            Ok(keeper) => {
                fds::send(control, &LauncherEvent::Started { report }, &[])?;
                keeper.serve()
            }
            Err(error) => {
                fds::send(control, &refused(&error), &[])?;
                Err(error)
            }
        }
    })?;
    let_go_of_control();
    child.wait()
}

/// Closes the control socket. From here on only the keep holds it: its end tells the keep that the
/// host has exited.
fn let_go_of_control() {
    let null = rustix::fs::open("/dev/null", rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty());
    if let Ok(null) = null {
        let _ = fds::place(null, 0);
    }
}

fn tree(launch: &Launch, filters: &CompiledFilters) -> KeepTree {
    let image = &launch.image;
    let mut binds = Vec::new();
    if !image.is_root {
        binds.push(HostBind {
            source: image.directory.clone(),
            target: image.inside().to_owned(),
        });
    }
    if let Some(layers) = &launch.layers {
        binds.push(HostBind {
            source: layers.clone(),
            target: PathBuf::from("/opt/layers"),
        });
    }
    // One that is removed meanwhile is not thawed.
    if let Some(frozen) = &launch.frozen
        && frozen.place().directory.is_dir()
    {
        binds.push(HostBind {
            source: frozen.place().directory.clone(),
            target: PathBuf::from(frozen::DIRECTORY),
        });
    }
    let mut files = package(launch);
    for (index, program) in filters.to_bytes().into_iter().enumerate() {
        files.push((
            PathBuf::from(format!("/opt/cellblock/filter-{index}.bpf")),
            program,
        ));
    }
    KeepTree {
        root: image.is_root.then(|| image.directory.clone()),
        binds,
        files,
    }
}

/// Lists the kernel's package by paths inside a sandbox, with its bytecode if there is any.
fn package(launch: &Launch) -> Vec<(PathBuf, Vec<u8>)> {
    let bytecode = launch.bytecode.as_deref().map(crate::bytecode::files);
    let mut files = crate::kernel_package::files();
    files.extend(bytecode.unwrap_or_default());
    files
}
