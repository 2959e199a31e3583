//! The system call filter of user code and of the guest.
//!
//! Two classic BPF programs, compiled here once per launcher and installed by each process on
//! itself. The first returns `ENOSYS` for calls that the C library tries first and can replace
//! (`clone3` by `clone`). The second permits the calls in `table::ALLOWED` and returns `EPERM` for
//! all others; it comes last because it also blocks further filters. Without namespaces, the module
//! `alone` blocks more calls.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition as Condition,
    SeccompFilter, SeccompRule, sock_filter,
};

use crate::error::{During, Error, Result};

mod alone;
mod arguments;
pub mod staged;
pub mod table;

pub use arguments::Arguments;
use table::{ALLOWED, REPLACED};

const EPERM: SeccompAction = SeccompAction::Errno(libc::EPERM.cast_unsigned());

/// The compiled filters, in the order of installation.
#[derive(Clone, Debug)]
pub struct Filters {
    programs: [BpfProgram; 2],
}

impl Filters {
    /// Compiles the filters for this machine.
    pub fn compile() -> Result<Self> {
        let mut allowed = BTreeMap::new();
        for entry in ALLOWED {
            allowed
                .entry(entry.number)
                .or_insert_with(Vec::new)
                .extend(rules(entry.arguments)?);
        }
        // Left to the other program: if two programs block a call, the one installed last decides
        // the error.
        let replaced: BTreeMap<_, _> = REPLACED.iter().map(|(number, _)| (*number, Vec::new())).collect();
        allowed.extend(replaced.clone());
        let enosys = SeccompAction::Errno(libc::ENOSYS.cast_unsigned());
        Ok(Self {
            programs: [
                program(replaced, SeccompAction::Allow, enosys)?,
                program(allowed, EPERM, SeccompAction::Allow)?,
            ],
        })
    }

    /// Installs the filters on the calling thread, which must have `no_new_privs`.
    pub fn install(&self) -> Result<()> {
        self.programs.iter().try_for_each(install)
    }

    /// Installs the filters for a process without its own namespaces; `own_user` if it has the
    /// caller's user id.
    pub fn install_alone(&self, own_user: bool) -> Result<()> {
        alone::compile(own_user)?.iter().try_for_each(install)?;
        self.install()
    }
}

fn install(program: &BpfProgram) -> Result<()> {
    seccompiler::apply_filter(program)
        .map_err(|error| std::io::Error::other(error.to_string()))
        .during("install the seccomp filter")
}

fn program(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    otherwise: SeccompAction,
    matched: SeccompAction,
) -> Result<BpfProgram> {
    let arch = std::env::consts::ARCH
        .try_into()
        .map_err(|_| Error::Filter("unknown architecture".into()))?;
    SeccompFilter::new(rules, otherwise, matched, arch)
        .and_then(BpfProgram::try_from)
        .map_err(|error| Error::Filter(error.to_string()))
}

fn instruction(filter: &sock_filter) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..2].copy_from_slice(&filter.code.to_ne_bytes());
    bytes[2] = filter.jt;
    bytes[3] = filter.jf;
    bytes[4..].copy_from_slice(&filter.k.to_ne_bytes());
    bytes
}

/// Returns the alternative conditions under which a call is allowed; an empty list means always.
fn rules(arguments: Arguments) -> Result<Vec<SeccompRule>> {
    let rule = |index, op, value| {
        Condition::new(index, Len::Dword, op, value)
            .and_then(|condition| SeccompRule::new(vec![condition]))
            .map_err(|error| Error::Filter(error.to_string()))
    };
    match arguments {
        Arguments::Any => Ok(Vec::new()),
        Arguments::OneOf(index, values) => values.iter().map(|value| rule(index, Op::Eq, *value)).collect(),
        Arguments::NoBitsOf(index, mask) => Ok(vec![rule(index, Op::MaskedEq(mask), 0)?]),
        Arguments::AllBitsOf(index, mask) => Ok(vec![rule(index, Op::MaskedEq(mask), mask)?]),
        Arguments::NoneOf(index, values) => {
            let conditions: std::result::Result<Vec<_>, _> = values
                .iter()
                .map(|value| Condition::new(index, Len::Dword, Op::Ne, *value))
                .collect();
            conditions
                .and_then(SeccompRule::new)
                .map(|rule| vec![rule])
                .map_err(|error| Error::Filter(error.to_string()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_compile_and_fit_the_kernel() {
        for program in Filters::compile().unwrap().programs {
            // BPF_MAXINSNS of the kernel.
            assert!(program.len() <= 4096);
        }
    }

    #[test]
    fn no_call_is_both_allowed_and_replaced() {
        for (number, _) in REPLACED {
            assert!(ALLOWED.iter().all(|entry| entry.number != *number), "{number}");
        }
    }

    #[test]
    fn every_allowed_call_names_its_users() {
        for entry in ALLOWED {
            assert!(entry.used_by.len() > 3, "{}", entry.number);
        }
    }
}
