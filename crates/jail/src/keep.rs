//! The keep: the outer confinement, which contains the template and all rooms.

use std::os::fd::{AsFd, AsRawFd, RawFd};

use rustix::process::{DumpableBehavior, Signal, set_dumpable_behavior, set_parent_process_death_signal};

use crate::cgroup::Trees;
use crate::error::{During, Error, Result, chain};
use crate::fds;
use crate::ids::KeepIds;
use crate::mounts::{self, KeepTree};
use crate::process::{Child, NAMESPACES, spawn};
use crate::protection::Protection;

/// Configuration of a keep.
#[derive(Debug)]
pub struct KeepPlan {
    /// Its id map.
    pub ids: KeepIds,
    /// Its file tree.
    pub tree: KeepTree,
}

/// Starts a keep whose first process runs `body`; called in the host's namespaces by a single-threaded process.
///
/// Returns when the keep is ready. Killing the child, or its parent's death, ends everything
/// inside. The child inherits the standard three descriptors and `keep_open`.
pub fn start(
    plan: &KeepPlan,
    trees: &Trees,
    keep_open: &[RawFd],
    body: impl FnOnce() -> Result<()>,
) -> Result<Child> {
    let (ours, theirs) = fds::packet_pair()?;
    let child = spawn(NAMESPACES, None, || {
        let mut open = keep_open.to_vec();
        open.push(theirs.as_raw_fd());
        fds::close_all_but(&open)?;
        match fds::receive::<()>(&theirs)? {
            Some(_) => {}
            None => return Ok(()),
        }
        let entered = enter(plan);
        let failure = entered
            .as_ref()
            .err()
            .map(|error| (is_refusal(error), chain(error)));
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
        match fds::receive::<Option<(bool, String)>>(ours.as_fd())? {
            Some((None, _)) => Ok(()),
            Some((Some((true, failure)), _)) => Err(Error::Missing {
                protection: Protection::MountNamespace,
                reason: format!(
                    "this machine creates user namespaces but grants no rights in them ({failure}); {}",
                    Protection::HiddenProc.remedy()
                ),
            }),
            Some((Some((false, failure)), _)) => Err(Error::Child(failure)),
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
    let sources = mounts::open_sources(&plan.tree)?;
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
    mounts::enter_keep(&plan.tree, sources)
}

/// Returns whether the machine rejected a mount, as in containers that mask `/proc` and with
/// security modules that permit user namespaces in name only.
fn is_refusal(error: &Error) -> bool {
    matches!(
        error,
        Error::Step { action, source } | Error::Path { action, source, .. }
            if action.contains("mount") && matches!(source.raw_os_error(), Some(libc::EPERM | libc::EACCES))
    )
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
