//! What this machine offers, before anything is started.

use std::fs;

use crate::cgroup::{Controller, Trees};
use crate::error::Result;
use crate::ids::KeepIds;
use crate::protection::{Demand, Demands, Protection, Report, State};
use crate::{landlock, subordinate};

/// Checks the policy against the machine: every protection's state, or the first strict one that is missing.
///
/// Namespaces are not tried here; making the keep does that, and answers with the same error.
pub fn report(demands: &Demands, ids: KeepIds, trees: &Trees) -> Result<Report> {
    states(demands, ids, trees, None)
}

/// The same for rooms that have no namespaces, with the reason why they have none.
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
            Protection::Landlock => (landlock::abi() == 0).then(|| "this kernel has no Landlock".to_owned()),
            Protection::LandlockScopes => {
                (landlock::abi() < 6).then(|| format!("Landlock ABI is {}, scopes need 6", landlock::abi()))
            }
            Protection::OwnUserId => (!ids.is_own()).then(|| lacks_own_ids(bare.is_some())),
            Protection::MemoryCgroup => lacks_controller(&controllers, Controller::Memory),
            Protection::ProcessCgroup => lacks_controller(&controllers, Controller::Pids),
            Protection::CpuCgroup => lacks_controller(&controllers, Controller::Cpu),
            _ => None,
        };
        let state = match lacking {
            _ if demands.of(protection) == Demand::Disabled => State::Disabled,
            Some(reason) => demands.lacking(protection, reason)?,
            None => State::Active,
        };
        report.note(protection, state);
    }
    Ok(report)
}

/// What the lack of namespaces means for one protection.
fn lost_without_namespaces(protection: Protection, ids: KeepIds, reason: &str) -> Option<String> {
    let single = !ids.is_own();
    let loss = match protection {
        Protection::UserNamespace => "ids of the sandbox are the machine's",
        Protection::PidNamespace if single => {
            "other processes can be counted, and only Landlock's scopes keep those of the same user from being signalled"
        }
        Protection::PidNamespace => {
            "other processes can be counted, though not signalled: they have other user ids"
        }
        Protection::MountNamespace => {
            "names and sizes of the machine's files can be asked for, only Landlock keeps their content; \
             `/workspace` and `/tmp` are a directory whose bytes and number of files are not bounded, and `/dev/shm` is closed"
        }
        Protection::NetNamespace => "only the system call filter keeps sockets from being made",
        Protection::IpcNamespace => "System V and POSIX IPC are refused instead",
        Protection::UtsNamespace => "the machine's host name can be read",
        Protection::CgroupNamespace => "the names of the machine's cgroups can be read",
        Protection::HiddenProc => "`/proc` is the machine's, of which Landlock shows a few files",
        Protection::NoCapabilities if single => {
            "no capability is held, but only privilege empties the bounding set; `no_new_privs` makes it worthless"
        }
        _ => return None,
    };
    Some(format!("{reason}; {loss}"))
}

/// Why sandboxes have the caller's own id.
fn lacks_own_ids(bare: bool) -> String {
    let uid = rustix::process::geteuid().as_raw();
    let reason = match subordinate::find(uid) {
        _ if uid == 0 => "this root may not use other user ids".to_owned(),
        Ok(_) if bare => "an ordinary user's subordinate ids need a user namespace".to_owned(),
        Ok(_) => "all of the user's subordinate ids are in use".to_owned(),
        Err(reason) => reason,
    };
    format!("sandboxes have the user id of whoever started them: {reason}")
}

fn lacks_controller(controllers: &[Controller], wanted: Controller) -> Option<String> {
    (!controllers.contains(&wanted))
        .then(|| format!("no cgroup with the {} controller may be made here", wanted.name()))
}

fn lacks_seccomp() -> Option<String> {
    let actions = fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail").unwrap_or_default();
    (!actions.contains("errno")).then(|| "this kernel has no seccomp filters".to_owned())
}
