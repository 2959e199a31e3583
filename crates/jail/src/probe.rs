//! Checks of what this machine offers, before anything starts.

use std::fs;

use crate::cgroup::{Controller, Trees};
use crate::error::Result;
use crate::ids::KeepIds;
use crate::protection::{Demand, Demands, Protection, ProtectionStatus, Report};
use crate::{landlock, subordinate, walled};

/// Checks the policy against the machine. Returns every protection's state, or an error for the
/// first strict one that is missing.
///
/// Namespaces are not tried here; creating the keep tries them and returns the same error.
pub fn report(demands: &Demands, ids: KeepIds, trees: &Trees) -> Result<Report> {
    states(demands, ids, trees, None)
}

/// Does the same for rooms without namespaces; `reason` says why they have none.
pub fn report_bare(demands: &Demands, ids: KeepIds, trees: &Trees, reason: &str) -> Result<Report> {
    states(demands, ids, trees, Some(reason))
}

fn states(demands: &Demands, ids: KeepIds, trees: &Trees, bare: Option<&str>) -> Result<Report> {
    let controllers = trees.controllers();
    let mut report = Report::default();
    for protection in Protection::ALL {
        let without = bare.and_then(|reason| lost_without_namespaces(protection, ids, reason));
        let lacking = match protection {
            _ if without.is_some() => without,
            Protection::Seccomp => lacks_seccomp(),
            Protection::Landlock => {
                (landlock::abi() == 0).then(|| "this kernel does not support Landlock".to_owned())
            }
            Protection::LandlockScopes => (landlock::abi() < 6).then(|| {
                format!(
                    "the kernel's Landlock ABI is {}; scopes require 6",
                    landlock::abi()
                )
            }),
            Protection::OwnUserId => (!ids.is_own()).then(|| lacks_own_ids(bare.is_some())),
            Protection::MemoryCgroup => lacks_controller(&controllers, Controller::Memory),
            Protection::ProcessCgroup => lacks_controller(&controllers, Controller::Pids),
            Protection::CpuCgroup => lacks_controller(&controllers, Controller::Cpu),
            _ => None,
        };
        let state = match lacking {
            _ if demands.of(protection) == Demand::Disabled => ProtectionStatus::Disabled,
            Some(reason) => demands.lacking(protection, reason)?,
            None => ProtectionStatus::Active,
        };
        report.note(protection, state);
    }
    Ok(report)
}

/// Returns what a protection loses without namespaces.
fn lost_without_namespaces(protection: Protection, ids: KeepIds, reason: &str) -> Option<String> {
    let single = !ids.is_own();
    let loss = match protection {
        Protection::UserNamespace => "the sandbox uses the machine's ids",
        Protection::PidNamespace if single => {
            "other processes can be counted, and only Landlock's scopes protect those of the same user \
             from signals"
        }
        Protection::PidNamespace => {
            "other processes can be counted but not signaled, because they have other user ids"
        }
        Protection::MountNamespace => {
            "names and sizes of the machine's files are visible, and only Landlock protects their \
             content; `/workspace` and `/tmp` are directories without limits on size and number of files, \
             and `/dev/shm` is inaccessible"
        }
        Protection::NetNamespace => "only the system call filter prevents the creation of sockets",
        Protection::IpcNamespace => "System V and POSIX IPC are blocked instead",
        Protection::UtsNamespace => "the machine's host name can be read",
        Protection::CgroupNamespace => "the names of the machine's cgroups can be read",
        Protection::HiddenProc => "`/proc` is the machine's; Landlock permits reading a few of its files",
        Protection::NoCapabilities if single => {
            "the process has no capabilities, but emptying the bounding set requires privileges; \
             `no_new_privs` makes the set useless"
        }
        _ => return None,
    };
    Some(format!("{reason}; {loss}"))
}

/// Returns why sandboxes run under the caller's own id.
fn lacks_own_ids(bare: bool) -> String {
    let uid = rustix::process::geteuid().as_raw();
    let reason = match subordinate::find(uid) {
        _ if uid == 0 => "this root user cannot use other user ids".to_owned(),
        Ok(_) if bare => "subordinate ids of an ordinary user require a user namespace".to_owned(),
        Ok(_) => "all of the user's subordinate ids are in use".to_owned(),
        Err(reason) => reason,
    };
    format!("sandboxes run under the user id that started Cellblock: {reason}")
}

fn lacks_controller(controllers: &[Controller], wanted: Controller) -> Option<String> {
    (!controllers.contains(&wanted)).then(|| {
        format!(
            "cannot create a cgroup with the {} controller here",
            wanted.name()
        )
    })
}

fn lacks_seccomp() -> Option<String> {
    if walled::is_declared() {
        // gVisor has filters and does not list their actions; one that cannot be installed is an error.
        return None;
    }
    let actions = fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail").unwrap_or_default();
    (!actions.contains("errno")).then(|| "this kernel does not support seccomp filters".to_owned())
}
