//! Confinement without namespaces, for machines that do not permit them and policies that accept
//! this. The process can only restrict itself: Landlock alone protects files, and seccomp alone
//! blocks sockets.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::process::{Gid, Signal, Uid, set_parent_process_death_signal};
use rustix::thread::CapabilitySet;

use crate::caps;
use crate::confine::ProcessLimits;
use crate::error::{Error, Result, SyscallResult};
use crate::ids::KeepIds;
use crate::landlock;
use crate::network::NetworkPolicy;
use crate::protection::{Demand, Demands, Protection};
use crate::scratch::RoomDir;
use crate::seccomp::Filters;
use crate::tree;

/// Files in `/proc` that a kernel may read. Its network, mounts and cgroups are missing because
/// they are the machine's.
const OWN_FACTS: [&str; 18] = [
    "/proc/self/auxv",
    "/proc/self/cmdline",
    "/proc/self/comm",
    "/proc/self/environ",
    "/proc/self/fdinfo",
    "/proc/self/io",
    "/proc/self/limits",
    "/proc/self/maps",
    "/proc/self/oom_score",
    "/proc/self/oom_score_adj",
    "/proc/self/sched",
    "/proc/self/schedstat",
    "/proc/self/smaps",
    "/proc/self/smaps_rollup",
    "/proc/self/stat",
    "/proc/self/statm",
    "/proc/self/status",
    "/proc/self/wchan",
];
/// Directories in `/proc` that a kernel may list: its descriptors and threads.
const OWN_FOLDERS: [&str; 2] = ["/proc/self/fd", "/proc/self/task"];

/// Confinement of a process in a bare room.
#[derive(Debug)]
pub struct BareRoom<'a> {
    /// The room's directory.
    pub dir: &'a RoomDir,
    /// Host directories that the process may read: the image, the kernel's code, layers.
    pub readable: &'a [PathBuf],
    /// User id of the room, if it differs from the caller's.
    pub user: Option<u32>,
    /// Limits of each process.
    pub limits: &'a ProcessLimits,
    /// The compiled filters.
    pub filters: &'a Filters,
    /// The room's network; without namespaces only a [walled](crate::walled) machine has any.
    pub network: NetworkPolicy,
}

impl BareRoom<'_> {
    /// Becomes the room's user and drops every privilege; the filter comes last. With `join`,
    /// files outside the room become inaccessible immediately. Otherwise the rules are only
    /// created, for processes that the caller starts. A [walled](crate::walled) machine has no rules.
    pub fn confine(&self, join: bool) -> Result<Option<OwnedFd>> {
        caps::drop_bounding();
        self.become_user()?;
        // Changing ids has cleared it.
        set_parent_process_death_signal(Some(Signal::KILL)).during("tie the process to its parent")?;
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
        self.limit()?;
        let workspace = self.dir.workspace();
        rustix::process::chdir(&workspace).during_on("enter", &workspace)?;
        caps::drop_all()?;
        if crate::walled::is_declared() {
            // Nobody else is in the machine, whose Unix sockets and System V objects need no further blocks.
            self.filters.install(self.network)?;
            return Ok(None);
        }
        let rules = self.rules(join)?;
        if join {
            landlock::join(rules.as_fd())?;
        }
        self.filters.install_alone(self.user.is_none())?;
        Ok(Some(rules))
    }

    fn become_user(&self) -> Result<()> {
        let Some(user) = self.user else { return Ok(()) };
        rustix::thread::set_thread_groups(&[]).during("leave the host's groups")?;
        let (uid, gid) = (Uid::from_raw(user), Gid::from_raw(user));
        rustix::thread::set_thread_res_gid(gid, gid, gid).during("become the room's group")?;
        rustix::thread::set_thread_res_uid(uid, uid, uid).during("become the room's user")
    }

    /// Applies the process limits. Linux counts all processes of a user together, so the limit on
    /// processes is raised by those that the caller's user already runs.
    fn limit(&self) -> Result<()> {
        let mut limits = self.limits.clone();
        if self.user.is_none() {
            let running = tree::tasks_of(rustix::process::getuid().as_raw());
            limits.processes = limits.processes.map(|most| most.saturating_add(running));
        }
        limits.apply()
    }

    fn rules(&self, join: bool) -> Result<OwnedFd> {
        let (workspace, tmp, data) = (self.dir.workspace(), self.dir.tmp(), self.dir.data());
        let mut readable: Vec<&Path> = self.readable.iter().map(PathBuf::as_path).collect();
        readable.push(&data);
        let mut listed = Vec::new();
        if join {
            // These paths name the calling process itself; its children have none of them.
            readable.extend(OWN_FACTS.map(Path::new));
            listed.extend(OWN_FOLDERS.map(Path::new));
        }
        landlock::create_alone(&readable, &listed, &[&workspace, &tmp])
    }
}

/// Returns whether the policy disables namespaces even if the machine has them. They are disabled
/// together; a policy that disables only one is rejected.
pub fn is_wanted(demands: &Demands) -> Result<bool> {
    if demands.of(Protection::UserNamespace) == Demand::Disabled {
        return Ok(true);
    }
    // These two are created separately from the others.
    let apart = [Protection::CgroupNamespace, Protection::HiddenProc];
    let alone = Protection::ALL
        .into_iter()
        .filter(|it| it.needs_namespaces() && !apart.contains(it))
        .find(|it| demands.of(*it) == Demand::Disabled);
    match alone {
        None => Ok(false),
        Some(protection) => Err(Error::Missing {
            protection,
            reason:
                "namespaces cannot be disabled one by one; disable `user_namespace` to disable all of them"
                    .to_owned(),
        }),
    }
}

/// Checks that the policy permits running without namespaces and that the remaining protections
/// hold; otherwise names the missing one.
pub fn allow(demands: &Demands, ids: KeepIds, reason: &str) -> Result<()> {
    if crate::walled::is_declared() {
        return may_change_users();
    }
    for protection in Protection::ALL.into_iter().filter(|it| it.needs_namespaces()) {
        demands.lacking(protection, reason)?;
    }
    for protection in [Protection::Landlock, Protection::Seccomp] {
        if demands.of(protection) == Demand::Disabled {
            return Err(missing(
                protection,
                "it cannot be disabled without namespaces: nothing else would protect files and sockets",
            ));
        }
    }
    if let KeepIds::Single { uid: 0, .. } = ids {
        return Err(missing(
            Protection::OwnUserId,
            "without namespaces, user code would run as root because this root user cannot use other ids; \
             run as an ordinary user",
        ));
    }
    if landlock::abi() < landlock::ALONE_ABI {
        return Err(missing(
            Protection::Landlock,
            &format!(
                "without namespaces, Landlock ABI {} or newer (Linux 6.2) is required; this kernel has \
                 ABI {}",
                landlock::ALONE_ABI,
                landlock::abi()
            ),
        ));
    }
    match ids {
        KeepIds::Range { .. } => may_change_users(),
        KeepIds::Single { .. } | KeepIds::Subordinate { .. } => Ok(()),
    }
}

fn may_change_users() -> Result<()> {
    let needed = CapabilitySet::SETUID | CapabilitySet::SETGID | CapabilitySet::CHOWN | CapabilitySet::KILL;
    let has = rustix::thread::capabilities(None).during("read the own capabilities")?;
    if has.effective.contains(needed) {
        return Ok(());
    }
    Err(missing(
        Protection::OwnUserId,
        "without namespaces, root needs the capabilities SETUID, SETGID, CHOWN and KILL to run user code \
         as another user; grant them or run as an ordinary user",
    ))
}

fn missing(protection: Protection, reason: &str) -> Error {
    Error::Missing {
        protection,
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDINARY: KeepIds = KeepIds::Single { uid: 1000, gid: 1000 };

    fn demands(set: &[(Protection, Demand)]) -> Demands {
        let mut demands = Demands::without_namespaces();
        demands.0.extend(set.iter().copied());
        demands
    }

    #[test]
    fn the_default_policy_requires_namespaces() {
        let error = allow(&Demands::default(), ORDINARY, "none here").unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("protection `user_namespace` is not available: none here; "),
            "{error}"
        );
        assert!(!is_wanted(&Demands::default()).unwrap());
    }

    #[test]
    fn the_error_names_a_namespace_that_stays_strict() {
        let strict = demands(&[(Protection::PidNamespace, Demand::Strict)]);
        let error = allow(&strict, ORDINARY, "none here").unwrap_err();
        assert!(error.to_string().contains("`pid_namespace`"), "{error}");
    }

    #[test]
    fn the_other_protections_cannot_be_disabled_without_namespaces() {
        for protection in [Protection::Landlock, Protection::Seccomp] {
            let error =
                allow(&demands(&[(protection, Demand::Disabled)]), ORDINARY, "none here").unwrap_err();
            assert!(error.to_string().contains("cannot be disabled"), "{error}");
        }
    }

    #[test]
    fn user_code_never_runs_as_root() {
        let root = KeepIds::Single { uid: 0, gid: 0 };
        let error = allow(&demands(&[]), root, "none here").unwrap_err();
        assert!(error.to_string().contains("would run as root"), "{error}");
    }

    #[test]
    fn one_namespace_cannot_be_disabled_alone() {
        let one = Demands([(Protection::NetNamespace, Demand::Disabled)].into());
        let error = is_wanted(&one).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("namespaces cannot be disabled one by one"),
            "{error}"
        );
        let all = Demands([(Protection::UserNamespace, Demand::Disabled)].into());
        assert!(is_wanted(&all).unwrap());
    }
}
