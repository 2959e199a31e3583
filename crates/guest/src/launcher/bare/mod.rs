//! The launcher without namespaces: it serves the same requests with rooms that are process trees.
//!
//! ```text
//! launcher             collects what loses its parents, ends it, and removes directories and cgroups
//!   └── keep           serves the host's requests
//!         └── shepherd one per room: starts its guest and kernels, collects their orphans, ends them
//!               ├── guest
//!               └── kernel ── what user code starts
//! ```
//!
//! There is no template. A kernel without namespaces of its own could not enter a room after its
//! fork, and forking from a process that may change users would give that right to the image's
//! code.

use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cellblock_jail::cgroup::Trees;
use cellblock_jail::error::SyscallResult;
use cellblock_jail::ids::KeepIds;
use cellblock_jail::process::spawn;
use cellblock_jail::protection::Protection;
use cellblock_jail::scratch::Scratch;
use cellblock_jail::seccomp::Filters;
use cellblock_jail::{Error, Result, bare, fds, probe, tree, walled};
use rustix::process::{Signal, set_child_subreaper, set_parent_process_death_signal};

use super::control::{Launch, LauncherEvent};
use crate::kernel_package;

mod keeper;
mod kernel;
mod memory;
mod shepherd;

/// Path of the kernel's package below the launcher's directory.
const PACKAGE: &str = "kernel";

/// Serves the host without namespaces until it closes the socket; returns the keep's raw wait
/// status.
pub(super) fn keep_and_wait(control: &OwnedFd, launch: &Launch, trees: &Trees, reason: &str) -> Result<i32> {
    let launch = &Launch {
        ids: launch.ids.without_namespaces(),
        ..launch.clone()
    };
    bare::allow(&launch.demands, launch.ids, reason)?;
    if launch.image.is_root {
        if !launch.walled {
            return Err(Error::Missing {
                protection: Protection::MountNamespace,
                reason: format!(
                    "the image is a root filesystem, which needs a mount namespace to become the \
                     sandbox's root, but {reason}; use an image that Cellblock builds, or a backend with \
                     a machine around it (`gvisor`, `microvm`)"
                ),
            });
        }
        walled::enter_root(&launch.image.directory)?;
    }
    let report = probe::report_bare(&launch.demands, launch.ids, trees, reason)?;
    let filters = Filters::compile()?;
    if matches!(launch.ids, KeepIds::Range { .. }) && !launch.walled {
        others_may_enter(&launch.image.directory)?;
        others_may_enter(&launch.scratch)?;
    }
    let scratch = Scratch::create(&launch.scratch)?;
    scratch.write(&package(super::package(launch)))?;
    set_child_subreaper(Some(rustix::process::getpid())).during("collect orphans")?;
    let mut keep_open = vec![control.as_raw_fd()];
    keep_open.extend(trees.descriptors());
    let child = spawn(0, None, || {
        set_parent_process_death_signal(Some(Signal::KILL)).during("tie the keep to its launcher")?;
        set_child_subreaper(Some(rustix::process::getpid())).during("collect orphans")?;
        fds::close_all_but(&keep_open)?;
        rustix::thread::set_name(c"cellblock-keep").during("name the keep")?;
        fds::send(control, &LauncherEvent::Started { report }, &[])?;
        let ready = LauncherEvent::TemplateReady {
            failed: Vec::new(),
            import_ms: 0,
        };
        fds::send(control, &ready, &[])?;
        let served = keeper::Keeper::new(control, launch, trees, &filters, &scratch)?.serve();
        tree::end_own(&[]);
        served
    })
    .during("start the keep")?;
    super::let_go_of_control();
    let status = child.wait();
    // Including processes that a killed keep left behind.
    tree::end_own(&[]);
    status
}

/// Names the files of the kernel's package by paths below the launcher's directory.
fn package(files: Vec<(PathBuf, Vec<u8>)>) -> Vec<(PathBuf, Vec<u8>)> {
    let below = |path: &Path| {
        let path = path.strip_prefix(kernel_package::ROOT).unwrap_or(path);
        Path::new(PACKAGE).join(path)
    };
    let files = files.into_iter();
    files.map(|(path, content)| (below(&path), content)).collect()
}

/// Checks that an unprivileged user id can reach a directory; without mounts, only its mode bits
/// can permit this.
fn others_may_enter(path: &Path) -> Result<()> {
    const ENTER: u32 = 0o001;
    for ancestor in path.ancestors().filter(|it| !it.as_os_str().is_empty()) {
        let Ok(metadata) = std::fs::metadata(ancestor) else {
            continue;
        };
        if metadata.permissions().mode() & ENTER == 0 {
            return Err(Error::Child(format!(
                "without namespaces, each sandbox runs as its own user, which must be able to enter `{}`; \
                 set CELLBLOCK_HOME to a directory that other users can enter, such as /var/lib/cellblock",
                ancestor.display()
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_is_in_its_own_directory() {
        let place = Path::new("kernel/cellblock_kernel/boot/lone.py");
        let package = package(kernel_package::files());
        assert!(package.iter().any(|(path, _)| path == place));
        assert!(package.iter().all(|(path, _)| path.is_relative()));
    }
}
