//! The kernel mechanisms that confine a sandbox, what a policy asks of each, and what is active.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// One mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protection {
    /// Ids and capabilities of the sandbox mean nothing outside it.
    UserNamespace,
    /// The sandbox sees and signals its own processes only.
    PidNamespace,
    /// The sandbox has a file tree of its own.
    MountNamespace,
    /// No network device but a loopback that is down.
    NetNamespace,
    /// `SysV` and POSIX message queues, semaphores and shared memory are its own.
    IpcNamespace,
    /// A host name of its own.
    UtsNamespace,
    /// The host's cgroup paths are hidden.
    CgroupNamespace,
    /// `/proc` shows own processes only, and its dangerous files are masked.
    HiddenProc,
    /// Only listed system calls work.
    Seccomp,
    /// A second wall around files, by the Landlock security module.
    Landlock,
    /// Landlock also bars abstract sockets and signals to outside (ABI 6).
    LandlockScopes,
    /// No capability in any set.
    NoCapabilities,
    /// `execve` never gains privilege.
    NoNewPrivs,
    /// User code runs under a user id that no other sandbox or host process has.
    OwnUserId,
    /// Memory is bounded by a cgroup.
    MemoryCgroup,
    /// The number of processes is bounded by a cgroup.
    ProcessCgroup,
    /// CPU time is bounded by a cgroup.
    CpuCgroup,
}

impl Protection {
    /// Every protection, in the order of reports.
    pub const ALL: [Self; 17] = [
        Self::UserNamespace,
        Self::PidNamespace,
        Self::MountNamespace,
        Self::NetNamespace,
        Self::IpcNamespace,
        Self::UtsNamespace,
        Self::CgroupNamespace,
        Self::HiddenProc,
        Self::Seccomp,
        Self::Landlock,
        Self::LandlockScopes,
        Self::NoCapabilities,
        Self::NoNewPrivs,
        Self::OwnUserId,
        Self::MemoryCgroup,
        Self::ProcessCgroup,
        Self::CpuCgroup,
    ];

    /// What a policy asks for when it does not say.
    ///
    /// Degradable are only those that common machines lack: Landlock (kernels before 5.13 or with it switched off), its scopes (before
    /// 6.12), a user id of its own (needs root or subordinate ids), and cgroups (need root or delegation).
    pub const fn default_demand(self) -> Demand {
        match self {
            Self::UserNamespace
            | Self::PidNamespace
            | Self::MountNamespace
            | Self::NetNamespace
            | Self::IpcNamespace
            | Self::UtsNamespace
            | Self::CgroupNamespace
            | Self::HiddenProc
            | Self::Seccomp
            | Self::NoCapabilities
            | Self::NoNewPrivs => Demand::Strict,
            Self::Landlock
            | Self::LandlockScopes
            | Self::OwnUserId
            | Self::MemoryCgroup
            | Self::ProcessCgroup
            | Self::CpuCgroup => Demand::Degradable,
        }
    }

    /// Whether it is a namespace, or hangs on one: all of these are there or none.
    pub const fn needs_namespaces(self) -> bool {
        matches!(
            self,
            Self::UserNamespace
                | Self::PidNamespace
                | Self::MountNamespace
                | Self::NetNamespace
                | Self::IpcNamespace
                | Self::UtsNamespace
                | Self::CgroupNamespace
                | Self::HiddenProc
        )
    }

    /// What gives a machine this protection, for a person who lacks it.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::UserNamespace
            | Self::PidNamespace
            | Self::MountNamespace
            | Self::NetNamespace
            | Self::IpcNamespace
            | Self::UtsNamespace
            | Self::CgroupNamespace => {
                "allow user namespaces: `sysctl user.max_user_namespaces` above 0, \
                 `kernel.unprivileged_userns_clone=1` and `kernel.apparmor_restrict_unprivileged_userns=0` where they exist; \
                 or allow to do without them (`--without-namespaces`)"
            }
            Self::HiddenProc => {
                "run outside a container that masks `/proc`, or give it an unmasked one; or allow to do without (`--without-namespaces`)"
            }
            Self::Seccomp => "use a kernel with CONFIG_SECCOMP_FILTER",
            Self::Landlock => "use Linux 5.13 or newer with `landlock` among its security modules",
            Self::LandlockScopes => "use Linux 6.12 or newer",
            Self::NoCapabilities | Self::NoNewPrivs => "use Linux 4.3 or newer",
            Self::OwnUserId => {
                "install `newuidmap` and `newgidmap` (Debian: `uidmap`) and give the user ids \
                 (`usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER`, with numbers that no other user has); \
                 or run as root"
            }
            Self::MemoryCgroup | Self::ProcessCgroup | Self::CpuCgroup => {
                "run as root, or under a systemd user session with delegated cgroups \
                 (`systemd-run --user --scope -p Delegate=yes cellblock …`)"
            }
        }
    }
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// What a policy asks of a protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Demand {
    /// Without it nothing starts.
    Strict,
    /// Used where the machine has it, reported where not.
    Degradable,
    /// Not used.
    Disabled,
}

/// What a policy asks of all protections; those not named have their default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Demands(pub BTreeMap<Protection, Demand>);

impl Demands {
    /// The named set for machines that refuse namespaces, such as most containers: everything that hangs on a user namespace may be missing,
    /// and what may be missing by default. Where the machine has them they are used all the same.
    pub fn without_namespaces() -> Self {
        let lacking = |it: &Protection| {
            // The bounding set can only be emptied with privilege, of which a user namespace gives enough.
            it.needs_namespaces() || *it == Protection::NoCapabilities
        };
        let needed = Protection::ALL.into_iter().filter(lacking);
        Self(needed.map(|it| (it, Demand::Degradable)).collect())
    }

    /// What is asked of one protection.
    pub fn of(&self, protection: Protection) -> Demand {
        self.0
            .get(&protection)
            .copied()
            .unwrap_or_else(|| protection.default_demand())
    }

    /// Turns "the machine lacks it" into an error or a degraded state, as asked.
    pub fn lacking(&self, protection: Protection, reason: impl Into<String>) -> crate::Result<State> {
        let reason = reason.into();
        match self.of(protection) {
            Demand::Strict => Err(crate::Error::Missing {
                protection,
                reason: format!("{reason}; {}", protection.remedy()),
            }),
            Demand::Degradable => Ok(State::Degraded { reason }),
            Demand::Disabled => Ok(State::Disabled),
        }
    }
}

/// What became of one protection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum State {
    /// In force.
    Active,
    /// The machine lacks it, and the policy allows that.
    Degraded {
        /// Why.
        reason: String,
    },
    /// The policy switched it off.
    Disabled,
}

/// The state of every protection of a running sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Report(pub BTreeMap<Protection, State>);

impl Report {
    /// Notes one state.
    pub fn note(&mut self, protection: Protection, state: State) {
        self.0.insert(protection, state);
    }

    /// Whether a protection is in force.
    pub fn is_active(&self, protection: Protection) -> bool {
        self.0.get(&protection) == Some(&State::Active)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strict_protection_that_is_lacking_is_an_error_that_says_what_to_do() {
        let error = Demands::default()
            .lacking(Protection::Seccomp, "no filters here")
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "protection `seccomp` is not available: no filters here; use a kernel with CONFIG_SECCOMP_FILTER"
        );
    }

    #[test]
    fn a_degradable_protection_that_is_lacking_is_reported() {
        let state = Demands::default().lacking(Protection::Landlock, "ABI 0").unwrap();
        assert_eq!(
            state,
            State::Degraded {
                reason: "ABI 0".into()
            }
        );
    }

    #[test]
    fn all_lists_each_protection_once() {
        let mut all = Protection::ALL.to_vec();
        all.dedup();
        assert_eq!(all.len(), 17);
    }
}
