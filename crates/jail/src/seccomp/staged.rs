//! The filters in two stages, for kernels that are forked from a template.
//!
//! Linux looks through a whole filter when it is installed, once per system call that exists: most of a millisecond. So the template
//! installs the long ones on itself and its forks inherit them; there the few calls by which a fork enters its room are still allowed.
//! A short filter that refuses these is what each kernel adds. The three together allow what the [two](super::Filters) allow.

use std::collections::BTreeMap;

use seccompiler::{BpfProgram, SeccompAction, SeccompRule};

use super::table::{ALLOWED, REPLACED};
use super::{Arguments, EPERM, Filters, instruction, program, rules};
use crate::error::Result;

/// What a fork of the template does to enter its room, and user code may not.
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
    /// Compiles them; the one that answers `ENOSYS` is the same in both forms.
    pub fn compile(filters: &Filters) -> Result<Self> {
        let mut allowed = entering()?;
        allowed.extend(REPLACED.iter().map(|(number, _)| (*number, Vec::new())));
        for entry in ALLOWED {
            let also = rules(entry.arguments)?;
            match allowed.get_mut(&entry.number) {
                // No rule means always: there is nothing to add to it.
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

    /// The programs as `struct sock_filter` arrays: what the template installs, then what each kernel adds.
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
    fn no_call_of_entering_a_room_is_allowed_to_user_code() {
        let allowed: Vec<_> = ALLOWED.iter().map(|entry| entry.number).collect();
        assert!(!allowed.contains(&libc::SYS_setns));
        assert!(!allowed.contains(&libc::SYS_capset));
    }

    #[test]
    fn what_each_kernel_adds_is_short() {
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
