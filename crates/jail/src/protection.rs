//! The kernel mechanisms that confine a sandbox, the policy's demand for each, and the active ones.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::enclosure::Enclosure;

/// A kernel mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protection {
    /// The sandbox's ids and capabilities have no effect outside it.
    UserNamespace,
    /// The sandbox sees and signals only its own processes.
    PidNamespace,
    /// The sandbox has its own file tree.
    MountNamespace,
    /// The sandbox has no network device except a loopback that is down.
    NetNamespace,
    /// The sandbox has its own message queues, semaphores and shared memory (System V and POSIX).
    IpcNamespace,
    /// The sandbox has its own host name.
    UtsNamespace,
    /// The host's cgroup paths are hidden.
    CgroupNamespace,
    /// `/proc` shows only the sandbox's processes, and its dangerous files are masked.
    HiddenProc,
    /// Only listed system calls work.
    Seccomp,
    /// Landlock protects files a second time.
    Landlock,
    /// Landlock also blocks abstract sockets and signals outside the sandbox (ABI 6).
    LandlockScopes,
    /// No capability in any set.
    NoCapabilities,
    /// `execve` never gains privileges.
    NoNewPrivs,
    /// User code runs under a user id that no other sandbox and no host process has.
    OwnUserId,
    /// A cgroup limits memory.
    MemoryCgroup,
    /// A cgroup limits the number of processes.
    ProcessCgroup,
    /// A cgroup limits CPU time.
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

    /// Returns the demand of a policy that does not name the protection.
    ///
    /// The degradable ones are those that common machines lack: a host name (containers refuse to
    /// set it), Landlock (kernels before 5.13, or with Landlock disabled), its scopes (before
    /// 6.12), a separate user id (needs root or subordinate ids), and cgroups (need root or
    /// delegation).
    pub const fn default_demand(self) -> Demand {
        match self {
            Self::UserNamespace
            | Self::PidNamespace
            | Self::MountNamespace
            | Self::NetNamespace
            | Self::IpcNamespace
            | Self::CgroupNamespace
            | Self::HiddenProc
            | Self::Seccomp
            | Self::NoCapabilities
            | Self::NoNewPrivs => Demand::Strict,
            Self::UtsNamespace
            | Self::Landlock
            | Self::LandlockScopes
            | Self::OwnUserId
            | Self::MemoryCgroup
            | Self::ProcessCgroup
            | Self::CpuCgroup => Demand::Degradable,
        }
    }

    /// Returns whether the protection is a namespace or depends on one: these are available
    /// together or not at all.
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

    /// Returns how this machine gets this protection, as advice for its administrator.
    pub fn remedy(self) -> &'static str {
        let enclosure = Enclosure::around();
        match (self, enclosure) {
            (it, Some(enclosure)) if it.needs_namespaces() => enclosure.remedy(),
            (Self::HiddenProc, None) => {
                "run outside the container that masks `/proc`, or unmask it; or permit running without \
                 namespaces (`--without-namespaces`)"
            }
            (it, None) if it.needs_namespaces() => {
                "allow user namespaces: `sysctl user.max_user_namespaces` above 0, \
                 `kernel.unprivileged_userns_clone=1` and \
                 `kernel.apparmor_restrict_unprivileged_userns=0` where they exist; or permit running \
                 without them (`--without-namespaces`)"
            }
            (Self::Landlock, _) => "use Linux 5.13 or newer with `landlock` among its security modules",
            (Self::LandlockScopes, _) => "use Linux 6.12 or newer",
            (Self::NoCapabilities | Self::NoNewPrivs, _) => "use Linux 4.3 or newer",
            (Self::OwnUserId, _) => {
                "install `newuidmap` and `newgidmap` (Debian: `uidmap`) and give the user ids (`usermod \
                 --add-subuids 100000-165535 --add-subgids 100000-165535 USER`, with numbers that no \
                 other user has); or run as root"
            }
            (Self::MemoryCgroup | Self::ProcessCgroup | Self::CpuCgroup, _) => {
                "run as root, or under a systemd user session with delegated cgroups \
                 (`systemd-run --user --scope -p Delegate=yes cellblock …`)"
            }
            _ => "use a kernel with CONFIG_SECCOMP_FILTER",
        }
    }
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// A policy's demand for one protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Demand {
    /// Nothing starts without it.
    Strict,
    /// Used if the machine has it; reported if not.
    Degradable,
    /// Not used.
    Disabled,
}

/// A policy's demands for all protections; the others have their defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Demands(pub BTreeMap<Protection, Demand>);

impl Demands {
    /// Returns the demands for machines that do not permit namespaces, such as most containers:
    /// everything that depends on a user namespace may be missing, and so may what is degradable by
    /// default. A machine that has them still uses them.
    pub fn without_namespaces() -> Self {
        let lacking = |it: &Protection| {
            // Only a privileged process can empty the bounding set; a user namespace grants enough
            // privileges.
            it.needs_namespaces() || *it == Protection::NoCapabilities
        };
        let needed = Protection::ALL.into_iter().filter(lacking);
        Self(needed.map(|it| (it, Demand::Degradable)).collect())
    }

    /// Returns the demands for rooms in a machine of their own, whose [wall](crate::walled) replaces
    /// what its kernel lacks.
    pub fn walled() -> Self {
        let kept = [
            Protection::NoCapabilities,
            Protection::NoNewPrivs,
            Protection::OwnUserId,
            Protection::Seccomp,
        ];
        let replaced = Protection::ALL.into_iter().filter(|it| !kept.contains(it));
        Self(replaced.map(|it| (it, Demand::Disabled)).collect())
    }

    /// Returns the demand for one protection.
    pub fn of(&self, protection: Protection) -> Demand {
        self.0
            .get(&protection)
            .copied()
            .unwrap_or_else(|| protection.default_demand())
    }

    /// Turns a missing protection into an error or a degraded state, depending on the demand.
    pub fn lacking(
        &self,
        protection: Protection,
        reason: impl Into<String>,
    ) -> crate::Result<ProtectionStatus> {
        let reason = reason.into();
        match self.of(protection) {
            Demand::Strict => Err(crate::Error::Missing {
                protection,
                reason: format!("{reason}; {}", protection.remedy()),
            }),
            Demand::Degradable => Ok(ProtectionStatus::Degraded { reason }),
            Demand::Disabled => Ok(ProtectionStatus::Disabled),
        }
    }
}

/// State of one protection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum ProtectionStatus {
    /// In force.
    Active,
    /// The machine lacks it, and the policy allows that.
    Degraded {
        /// Reason that the machine lacks it.
        reason: String,
    },
    /// The policy disables it.
    Disabled,
}

/// The state of every protection of a running sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Report(pub BTreeMap<Protection, ProtectionStatus>);

impl Report {
    /// Records the state of one protection.
    pub fn note(&mut self, protection: Protection, state: ProtectionStatus) {
        self.0.insert(protection, state);
    }

    /// Returns whether a protection is in force.
    pub fn is_active(&self, protection: Protection) -> bool {
        self.0.get(&protection) == Some(&ProtectionStatus::Active)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_strict_protection_is_an_error_with_a_remedy() {
        let error = Demands::default()
            .lacking(Protection::Seccomp, "no filters here")
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "protection `seccomp` is not available: no filters here; use a kernel with CONFIG_SECCOMP_FILTER"
        );
    }

    #[test]
    fn a_missing_degradable_protection_is_reported() {
        let state = Demands::default().lacking(Protection::Landlock, "ABI 0").unwrap();
        assert_eq!(
            state,
            ProtectionStatus::Degraded {
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
