//! Recognizing a container, because its advice differs from that of a machine.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// Enclosure that confines this process itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enclosure {
    /// A container of Docker.
    Docker,
    /// A container of Podman.
    Podman,
    /// A filter of system calls, as Kubernetes and systemd install.
    Filter,
}

impl Enclosure {
    /// Finds out what is around this process. The first call must come before the process changes
    /// its root or installs a filter.
    pub fn around() -> Option<Self> {
        static FOUND: OnceLock<Option<Enclosure>> = OnceLock::new();
        *FOUND.get_or_init(|| {
            let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
            Self::of(|path| Path::new(path).exists(), &status)
        })
    }

    fn of(exists: impl Fn(&str) -> bool, status: &str) -> Option<Self> {
        if exists("/run/.containerenv") {
            Some(Self::Podman)
        } else if exists("/.dockerenv") {
            Some(Self::Docker)
        } else {
            let filtered = |line: &str| {
                line.strip_prefix("Seccomp:")
                    .is_some_and(|mode| mode.trim() == "2")
            };
            status.lines().any(filtered).then_some(Self::Filter)
        }
    }

    /// Returns how sandboxes get namespaces in it.
    pub(crate) const fn remedy(self) -> &'static str {
        match self {
            Self::Docker => {
                "start the container with `--security-opt seccomp=deploy/seccomp.json --security-opt \
                 systempaths=unconfined`, on a host that allows user namespaces; or permit running \
                 without them (`--without-namespaces`)"
            }
            Self::Podman => {
                "start the container with `--security-opt seccomp=deploy/seccomp.json --security-opt \
                 unmask=ALL`, on a host that allows user namespaces; or permit running without them \
                 (`--without-namespaces`)"
            }
            Self::Filter => {
                "allow the system calls that `deploy/seccomp.json` allows (Kubernetes: a `Localhost` \
                 seccomp profile and `procMount: Unmasked`), on a host that allows user namespaces; or \
                 permit running without them (`--without-namespaces`)"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_are_recognized_by_their_file_and_other_filters_by_the_kernel() {
        let of = |file: &str, status: &str| Enclosure::of(|path| path == file, status);
        assert_eq!(of("/run/.containerenv", "Seccomp:\t2\n"), Some(Enclosure::Podman));
        assert_eq!(of("/.dockerenv", ""), Some(Enclosure::Docker));
        assert_eq!(
            of("", "NoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n"),
            Some(Enclosure::Filter)
        );
        assert_eq!(of("", "Seccomp:\t0\nSeccomp_filters:\t2\n"), None);
    }

    #[test]
    fn the_advice_for_a_container_names_its_flags() {
        let docker = Enclosure::Docker.remedy();
        assert!(docker.contains("seccomp=deploy/seccomp.json") && docker.contains("systempaths=unconfined"));
        assert!(Enclosure::Podman.remedy().contains("unmask=ALL"));
    }
}
