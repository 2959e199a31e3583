//! The launcher where there are no namespaces: the same requests, served by rooms that are process trees.
//!
//! ```text
//! launcher             collects what loses its parents, ends it, and removes directories and cgroups
//!   └── keep           serves the host's requests
//!         └── shepherd one per room: starts its guest and kernels, collects their orphans, ends them
//!               ├── guest
//!               └── kernel ── what user code starts
//! ```
//!
//! There is no template: a kernel that shares no namespace with its room cannot be given one after its fork, and forking from a process that
//! may change users would put the image's code in charge of that right.

use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cellblock_jail::cgroup::Trees;
use cellblock_jail::error::During;
use cellblock_jail::ids::KeepIds;
use cellblock_jail::process::spawn;
use cellblock_jail::scratch::Scratch;
use cellblock_jail::seccomp::Filters;
use cellblock_jail::{Error, Result, bare, fds, probe, tree};
use rustix::process::{Signal, set_child_subreaper, set_parent_process_death_signal};

use super::control::{Event, Launch};
use crate::kernel_package;

mod keeper;
mod kernel;
mod shepherd;

/// Where the kernel's package lies below the launcher's directory.
const PACKAGE: &str = "kernel";

/// Serves the host without namespaces until it is gone, and answers the keep's raw wait status.
pub(super) fn keep_and_wait(control: &OwnedFd, launch: &Launch, trees: &Trees, reason: &str) -> Result<i32> {
    let launch = &Launch {
        ids: launch.ids.without_namespaces(),
        ..launch.clone()
    };
    bare::allow(&launch.demands, launch.ids, reason)?;
    let report = probe::report_bare(&launch.demands, launch.ids, trees, reason)?;
    let filters = Filters::compile()?;
    if matches!(launch.ids, KeepIds::Range { .. }) {
        others_may_enter(&launch.python)?;
        others_may_enter(&launch.scratch)?;
    }
    let scratch = Scratch::create(&launch.scratch)?;
    scratch.write(&package())?;
    set_child_subreaper(Some(rustix::process::getpid())).during("collect orphans")?;
    let mut keep_open = vec![control.as_raw_fd()];
    keep_open.extend(trees.descriptors());
    let child = spawn(0, None, || {
        set_parent_process_death_signal(Some(Signal::KILL)).during("tie the keep to its launcher")?;
        set_child_subreaper(Some(rustix::process::getpid())).during("collect orphans")?;
        fds::close_all_but(&keep_open)?;
        rustix::thread::set_name(c"cellblock-keep").during("name the keep")?;
        fds::send(control, &Event::Started { report }, &[])?;
        let ready = Event::TemplateReady {
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
    // Also what a keep that was killed has left.
    tree::end_own(&[]);
    status
}

/// The kernel's package, by paths below the launcher's directory.
fn package() -> Vec<(PathBuf, Vec<u8>)> {
    let below = |path: &Path| {
        let path = path.strip_prefix(kernel_package::ROOT).unwrap_or(path);
        Path::new(PACKAGE).join(path)
    };
    let files = kernel_package::files().into_iter();
    files.map(|(path, content)| (below(&path), content)).collect()
}

/// Checks that a user id of no rights can reach a directory, which nothing but its mode bits can give without mounts.
fn others_may_enter(path: &Path) -> Result<()> {
    const ENTER: u32 = 0o001;
    for ancestor in path.ancestors().filter(|it| !it.as_os_str().is_empty()) {
        let Ok(metadata) = std::fs::metadata(ancestor) else {
            continue;
        };
        if metadata.permissions().mode() & ENTER == 0 {
            return Err(Error::Child(format!(
                "without namespaces each sandbox runs as a user of its own, who must be able to enter `{}`; \
                 set CELLBLOCK_HOME to a directory that others may enter, such as /var/lib/cellblock",
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
    fn the_package_lies_below_a_directory_of_its_own() {
        let place = Path::new("kernel/cellblock_kernel/boot/lone.py");
        assert!(package().iter().any(|(path, _)| path == place));
        assert!(package().iter().all(|(path, _)| path.is_relative()));
    }
}
