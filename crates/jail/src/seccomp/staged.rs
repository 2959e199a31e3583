//! The filters in two stages, for kernels that are forked from a template.
//!
//! Linux takes almost a millisecond to install a filter, because it checks the whole filter once
//! per existing system call. So the template installs the long filters on itself and its forks
//! inherit them, but they still permit the few calls by which a fork enters its room. Each kernel
//! adds a short filter that blocks these calls. The three filters together permit the same calls as
//! the [two](super::Filters).

use std::collections::BTreeMap;

use seccompiler::{BpfProgram, SeccompAction, SeccompRule};

use super::table::{ALLOWED, REPLACED};
use super::{Arguments, EPERM, Filters, instruction, program, rules};
use crate::error::Result;

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
pub struct Staged {
    inherited: [BpfProgram; 2],
    last: BpfProgram,
}

impl Staged {
    /// Compiles the filters; the one that returns `ENOSYS` is the same in both forms.
    pub fn compile(filters: &Filters) -> Result<Self> {
        let mut allowed = entering()?;
        allowed.extend(REPLACED.iter().map(|(number, _)| (*number, Vec::new())));
        for entry in ALLOWED {
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
                filters.programs[0].clone(),
                program(allowed, EPERM, SeccompAction::Allow)?,
            ],
            last: program(entering()?, SeccompAction::Allow, EPERM)?,
        })
    }

    /// Returns the programs as `struct sock_filter` arrays: those that the template installs, then
    /// the one that each kernel adds.
    pub fn to_bytes(&self) -> [Vec<u8>; 3] {
        let [replaced, allowed] = &self.inherited;
        [replaced, allowed, &self.last].map(|program| program.iter().flat_map(instruction).collect())
    }
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
        let staged = Staged::compile(&Filters::compile().unwrap()).unwrap();
        let [_, allowed, last] = staged.to_bytes();
        assert!(
            last.len() * 10 < allowed.len(),
            "{} of {}",
            last.len(),
            allowed.len()
        );
    }
}
