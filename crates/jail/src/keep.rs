//! The keep: the outer confinement, which contains the template and all rooms.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Signal, set_dumpable_behavior, set_parent_process_death_signal};
use rustix::thread::{UnshareFlags, move_into_link_name_space};
use serde::{Deserialize, Serialize};

use crate::cgroup::Trees;
use crate::enclosure::Enclosure;
use crate::error::{Error, Result, SyscallResult, chain};
use crate::fds;
use crate::ids::KeepIds;
use crate::mounts::{self, KeepTree};
use crate::process::{Child, NAMESPACES, spawn};
use crate::protection::{Demand, Demands, Protection, Report};

/// Configuration of a keep.
#[derive(Debug)]
pub struct KeepPlan {
    /// Its id map.
    pub ids: KeepIds,
    /// Its file tree.
    pub tree: KeepTree,
}

/// Starts a keep whose first process runs `body`; called in the host's namespaces by a
/// single-threaded process.
///
/// Returns when the keep is ready. Killing the child, or its parent's death, ends everything
/// inside. The child inherits the standard three descriptors and `keep_open`.
pub fn start(
    plan: &KeepPlan,
    trees: &Trees,
    keep_open: &[RawFd],
    body: impl FnOnce() -> Result<()>,
) -> Result<Child> {
    // The keep can no longer see it.
    let _ = Enclosure::around();
    let (ours, theirs) = fds::packet_pair()?;
    let child = spawn(NAMESPACES, None, || {
        let mut open = keep_open.to_vec();
        open.push(theirs.as_raw_fd());
        fds::close_all_but(&open)?;
        match fds::receive::<()>(&theirs)? {
            Some(_) => {}
            None => return Ok(()),
        }
        let entered = enter(plan).and_then(|()| may_enter_rooms(theirs.as_fd()));
        let failure = entered.as_ref().err().map(KeepFailure::of);
        fds::send(&theirs, &failure, &[])?;
        entered?;
        // The parent treats the end of this socket as a failed start, so it stays open exactly
        // until here.
        drop(theirs);
        body()
    })
    .map_err(missing_namespaces)?;
    let stand = || -> Result<()> {
        plan.ids.write(child.pid)?;
        trees.adopt_keep(child.pid)?;
        fds::send(ours.as_fd(), &(), &[])?;
        match fds::receive::<Option<KeepFailure>>(ours.as_fd())? {
            Some((None, _)) => Ok(()),
            Some((Some(failure), _)) => Err(failure.into()),
            None => Err(Error::Child("the keep exited during its setup".into())),
        }
    };
    if let Err(error) = stand() {
        child.kill();
        child.wait()?;
        return Err(error);
    }
    Ok(child)
}

fn enter(plan: &KeepPlan) -> Result<()> {
    use rustix::process::{Gid, Uid};
    set_parent_process_death_signal(Some(Signal::KILL)).during("tie the keep to its launcher")?;
    rustix::process::setsid().during("leave the terminal's session")?;
    let sources = or_missing_mounts(mounts::open_sources(&plan.tree))?;
    if plan.ids.is_own() {
        rustix::thread::set_thread_groups(&[]).during("leave the host's groups")?;
    }
    rustix::thread::set_thread_res_gid(Gid::ROOT, Gid::ROOT, Gid::ROOT).during("become the keep's group")?;
    rustix::thread::set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT).during("become the keep's user")?;
    // Changing ids clears both settings. The keep writes id maps through its children's /proc
    // files, which belong to root while the keep is undumpable.
    set_dumpable_behavior(DumpableBehavior::Dumpable).during("open the keep's /proc files")?;
    set_parent_process_death_signal(Some(Signal::KILL)).during("tie the keep to its launcher")?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    rustix::thread::set_name(c"cellblock-keep").during("name the keep")?;
    or_missing_mounts(mounts::enter_keep(&plan.tree, sources))
}

/// A failure of a keep, on its way to the launcher.
#[derive(Debug, Serialize, Deserialize)]
struct KeepFailure {
    text: String,
    /// The protection that the machine lacks because it refuses the failed step.
    lacks: Option<Protection>,
}

impl KeepFailure {
    fn of(error: &Error) -> Self {
        match error {
            Error::Missing { protection, reason } => Self {
                text: reason.clone(),
                lacks: Some(*protection),
            },
            error => Self {
                text: chain(error),
                lacks: None,
            },
        }
    }
}

impl From<KeepFailure> for Error {
    fn from(failure: KeepFailure) -> Self {
        match failure.lacks {
            Some(protection) => Self::Missing {
                protection,
                reason: failure.text,
            },
            None => Self::Child(failure.text),
        }
    }
}

/// Turns the refusal of a mount into the error of the missing protection. Containers that mask
/// `/proc` or filter system calls refuse them, and so do security modules that permit user
/// namespaces in name only.
fn or_missing_mounts<T>(mounted: Result<T>) -> Result<T> {
    mounted.map_err(|error| match &error {
        Error::Step { action, source } | Error::Path { action, source, .. }
            if matches!(source.raw_os_error(), Some(libc::EPERM | libc::ENOSYS))
                || (action.contains("mount") && source.raw_os_error() == Some(libc::EACCES)) =>
        {
            Error::Missing {
                protection: Protection::MountNamespace,
                reason: format!(
                    "this machine creates user namespaces but grants no rights in them ({}); {}",
                    chain(&error),
                    Protection::HiddenProc.remedy()
                ),
            }
        }
        _ => error,
    })
}

/// Checks calls that rooms need later, so that a filter around Cellblock that refuses them is
/// reported at the start: `setns`, with which kernels and mounts enter rooms, and `unshare`. Linux
/// itself rejects a descriptor that is not a namespace.
fn may_enter_rooms(not_a_namespace: BorrowedFd<'_>) -> Result<()> {
    // SAFETY: without flags the call changes nothing.
    let unshared = unsafe { rustix::thread::unshare_unsafe(UnshareFlags::empty()) };
    let entered = move_into_link_name_space(not_a_namespace, None);
    for (call, result, protection) in [
        ("setns", entered, Protection::UserNamespace),
        ("unshare", unshared, Protection::CgroupNamespace),
    ] {
        if let Err(error @ (Errno::PERM | Errno::NOSYS)) = result {
            return Err(Error::Missing {
                protection,
                reason: format!(
                    "this machine creates user namespaces but refuses `{call}` in them ({error}); {}",
                    protection.remedy()
                ),
            });
        }
    }
    Ok(())
}

/// Sets the host name of the keep, which rooms inherit. The profiles of containers refuse that, and
/// it hides nothing else.
pub fn name_host(demands: &Demands, report: &mut Report) -> Result<()> {
    if let Err(error) = rustix::system::sethostname(b"cellblock")
        && demands.of(Protection::UtsNamespace) != Demand::Disabled
    {
        let reason =
            format!("this machine refuses `sethostname` ({error}), so its own host name can be read");
        let state = demands.lacking(Protection::UtsNamespace, reason)?;
        report.note(Protection::UtsNamespace, state);
    }
    Ok(())
}

fn missing_namespaces(source: std::io::Error) -> Error {
    match source.raw_os_error() {
        Some(libc::EPERM | libc::ENOSPC | libc::EINVAL | libc::ENOSYS) => Error::Missing {
            protection: Protection::UserNamespace,
            reason: format!(
                "this machine does not permit new user namespaces ({source}); {}",
                Protection::UserNamespace.remedy()
            ),
        },
        _ => Error::Step {
            action: "make the keep's namespaces",
            source,
        },
    }
}
