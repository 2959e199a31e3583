//! What this machine offers, before anything is started.

use std::fs;

use crate::cgroup::{Controller, Trees};
use crate::error::Result;
use crate::ids::KeepIds;
use crate::protection::{Demand, Demands, Protection, Report, State};
use crate::rules;

/// Checks the policy against the machine: every protection's state, or the first strict one that is missing.
///
/// Namespaces are not tried here; making the keep does that, and answers with the same error.
pub fn report(demands: &Demands, ids: KeepIds, trees: &Trees) -> Result<Report> {
    let controllers = trees.controllers();
    let mut report = Report::default();
    for protection in Protection::ALL {
        let lacking = match protection {
            Protection::Seccomp => lacks_seccomp(),
            Protection::Landlock => (rules::abi() == 0).then(|| "this kernel has no Landlock".to_owned()),
            Protection::LandlockScopes => {
                (rules::abi() < 6).then(|| format!("Landlock ABI is {}, scopes need 6", rules::abi()))
            }
            Protection::OwnUserId => matches!(ids, KeepIds::Single { .. })
                .then(|| "running as an ordinary user, who has one user id".to_owned()),
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

fn lacks_controller(controllers: &[Controller], wanted: Controller) -> Option<String> {
    (!controllers.contains(&wanted))
        .then(|| format!("no cgroup with the {} controller may be made here", wanted.name()))
}

fn lacks_seccomp() -> Option<String> {
    let actions = fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail").unwrap_or_default();
    (!actions.contains("errno")).then(|| "this kernel has no seccomp filters".to_owned())
}
