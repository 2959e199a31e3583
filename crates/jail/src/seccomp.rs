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

use crate::error::{Error, Result, SyscallResult};
use crate::network::NetworkPolicy;

mod alone;
mod arguments;
pub mod staged;
pub mod table;

pub use arguments::{ArgumentCondition, Arguments};
use table::{ALLOWED, REPLACED, REPLACED_REQUESTS, SyscallRule, WITH_LOOPBACK};

const EPERM: SeccompAction = SeccompAction::Errno(libc::EPERM.cast_unsigned());

/// The compiled filters, in the order of installation.
#[derive(Clone, Debug)]
pub struct Filters {
    replaced: BpfProgram,
    /// Without a network, and with a loopback.
    allowed: [BpfProgram; 2],
}

impl Filters {
    /// Compiles the filters for this machine.
    pub fn compile() -> Result<Self> {
        // Left to the other program: if two programs block a call, the one installed last decides
        // the error.
        let replaced: BTreeMap<_, _> = REPLACED.iter().map(|(number, _)| (*number, Vec::new())).collect();
        let enosys = SeccompAction::Errno(libc::ENOSYS.cast_unsigned());
        let allowed = |network| {
            let mut allowed = replaced.clone();
            for entry in ALLOWED.iter().map(|entry| under(network, *entry)) {
                allowed
                    .entry(entry.number)
                    .or_insert_with(Vec::new)
                    .extend(rules(entry.arguments)?);
            }
            program(allowed, EPERM, SeccompAction::Allow)
        };
        let allowed = [allowed(NetworkPolicy::None)?, allowed(NetworkPolicy::Loopback)?];
        let mut replaced = replaced;
        for (number, arguments, _) in REPLACED_REQUESTS {
            replaced.insert(*number, rules(*arguments)?);
        }
        Ok(Self {
            allowed,
            replaced: program(replaced, SeccompAction::Allow, enosys)?,
        })
    }

    /// Installs the filters on the calling thread, which must have `no_new_privs`.
    pub fn install(&self, network: NetworkPolicy) -> Result<()> {
        let [none, loopback] = &self.allowed;
        install(&self.replaced)?;
        install(match network {
            NetworkPolicy::None => none,
            NetworkPolicy::Loopback | NetworkPolicy::Egress => loopback,
        })
    }

    /// Installs the filters for a process without its own namespaces; `own_user` if it has the
    /// caller's user id.
    pub fn install_alone(&self, own_user: bool) -> Result<()> {
        alone::compile(own_user)?.iter().try_for_each(install)?;
        self.install(NetworkPolicy::None)
    }
}

/// Returns the entry of a call under a network policy.
fn under(network: NetworkPolicy, entry: SyscallRule) -> SyscallRule {
    match network {
        NetworkPolicy::Loopback | NetworkPolicy::Egress if entry.number == WITH_LOOPBACK.number => {
            WITH_LOOPBACK
        }
        _ => entry,
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
    let condition = |index, op, value| {
        Condition::new(index, Len::Dword, op, value).map_err(|error| Error::Filter(error.to_string()))
    };
    let all = |conditions: Vec<Condition>| {
        SeccompRule::new(conditions).map_err(|error| Error::Filter(error.to_string()))
    };
    match arguments {
        Arguments::Any => Ok(Vec::new()),
        Arguments::OneOf(index, values) => values
            .iter()
            .map(|value| all(vec![condition(index, Op::Eq, *value)?]))
            .collect(),
        Arguments::NoBitsOf(index, mask) => Ok(vec![all(vec![condition(index, Op::MaskedEq(mask), 0)?])?]),
        Arguments::AllBitsOf(index, mask) => {
            Ok(vec![all(vec![condition(index, Op::MaskedEq(mask), mask)?])?])
        }
        Arguments::NoneOf(index, values) => {
            let differ = values.iter().map(|value| condition(index, Op::Ne, *value));
            Ok(vec![all(differ.collect::<Result<_>>()?)?])
        }
        Arguments::Cases(cases) => cases
            .iter()
            .map(|case| {
                let conditions = case.iter().map(|is| match *is {
                    ArgumentCondition::Equal(index, value) => condition(index, Op::Eq, value),
                    ArgumentCondition::Not(index, value) => condition(index, Op::Ne, value),
                    ArgumentCondition::Masked(index, mask, value) => {
                        condition(index, Op::MaskedEq(mask), value)
                    }
                });
                all(conditions.collect::<Result<_>>()?)
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_compile_and_fit_the_kernel() {
        let Filters { replaced, allowed } = Filters::compile().unwrap();
        for program in allowed.iter().chain([&replaced]) {
            // BPF_MAXINSNS of the kernel.
            assert!(program.len() <= 4096);
        }
        assert_ne!(allowed[0], allowed[1]);
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
