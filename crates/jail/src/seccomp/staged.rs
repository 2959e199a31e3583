//! The filters in two stages, for kernels that are forked from a template.
//!
//! Linux takes almost a millisecond to install a filter, because it checks the whole filter once
//! per existing system call. So the template installs the long filters on itself and its forks
//! inherit them, but they still permit the few calls by which a fork enters its room. Each kernel
//! adds a short filter that blocks these calls. The three filters together permit the same calls as
//! the [two](super::Filters) of its network policy: the long filters permit the sockets of every
//! policy, and the short one those of the room's.

use std::collections::BTreeMap;

use seccompiler::{BpfProgram, SeccompAction, SeccompRule};

use super::arguments::NOT_UNIX;
use super::table::{ALLOWED, REPLACED, WITH_LOOPBACK};
use super::{Arguments, EPERM, Filters, instruction, program, rules};
use crate::error::Result;
use crate::network::NetworkPolicy;

/// Calls that a fork of the template makes to enter its room; user code may not make them.
const ENTERING: [(i64, Arguments); 3] = [
    (libc::SYS_setns, Arguments::Any),
    (libc::SYS_capset, Arguments::Any),
    (
        libc::SYS_prctl,
        Arguments::OneOf(
            0,
            &[
                libc::PR_CAPBSET_DROP as u64,
                libc::PR_CAP_AMBIENT as u64,
                libc::PR_SET_SECCOMP as u64,
            ],
        ),
    ),
];

/// The compiled filters.
#[derive(Clone, Debug)]
pub struct CompiledFilters {
    inherited: [BpfProgram; 2],
    /// Without a network, and with a loopback.
    last: [BpfProgram; 2],
}

impl CompiledFilters {
    /// Compiles the filters; the one that returns `ENOSYS` is the same in both forms.
    pub fn compile(filters: &Filters) -> Result<Self> {
        let mut allowed = entering()?;
        allowed.extend(REPLACED.iter().map(|(number, _)| (*number, Vec::new())));
        for entry in ALLOWED.iter().chain([&WITH_LOOPBACK]) {
            let also = rules(entry.arguments)?;
            match allowed.get_mut(&entry.number) {
                // No rule means always: there is nothing to add.
                Some(present) if present.is_empty() || also.is_empty() => present.clear(),
                Some(present) => present.extend(also),
                None => {
                    allowed.insert(entry.number, also);
                }
            }
        }
        Ok(Self {
            inherited: [
                filters.replaced.clone(),
                program(allowed, EPERM, SeccompAction::Allow)?,
            ],
            last: [last(NetworkPolicy::None)?, last(NetworkPolicy::Loopback)?],
        })
    }

    /// Installs the two that a template's kernels inherit on the calling thread, before it becomes
    /// a template whose Python is not ours.
    pub fn install_inherited(&self) -> Result<()> {
        self.inherited.iter().try_for_each(super::install)
    }

    /// Returns the programs as `struct sock_filter` arrays: the two that the template installs, then
    /// the one that each kernel adds without a network, and the one that it adds with a loopback.
    pub fn to_bytes(&self) -> [Vec<u8>; 4] {
        let [replaced, allowed] = &self.inherited;
        let [none, loopback] = &self.last;
        [replaced, allowed, none, loopback].map(|program| program.iter().flat_map(instruction).collect())
    }
}

fn last(network: NetworkPolicy) -> Result<BpfProgram> {
    let mut blocked = entering()?;
    if network.is_none() {
        blocked.insert(libc::SYS_socket, rules(NOT_UNIX)?);
    }
    program(blocked, SeccompAction::Allow, EPERM)
}

fn entering() -> Result<BTreeMap<i64, Vec<SeccompRule>>> {
    ENTERING
        .iter()
        .map(|(number, arguments)| Ok((*number, rules(*arguments)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_code_cannot_make_the_calls_that_enter_a_room() {
        let allowed: Vec<_> = ALLOWED.iter().map(|entry| entry.number).collect();
        assert!(!allowed.contains(&libc::SYS_setns));
        assert!(!allowed.contains(&libc::SYS_capset));
    }

    #[test]
    fn the_filter_that_each_kernel_adds_is_short() {
        let staged = CompiledFilters::compile(&Filters::compile().unwrap()).unwrap();
        let [_, allowed, none, loopback] = staged.to_bytes();
        for last in [none, loopback] {
            assert!(
                last.len() * 10 < allowed.len(),
                "{} of {}",
                last.len(),
                allowed.len()
            );
        }
    }
}
