//! Next step on this machine, with the command for it.

use std::fs;

use cellblock_sandbox::jail::enclosure::Enclosure;
use serde::Serialize;

use super::report::ProtectionReport;

/// A step that adds protections.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct NextStep {
    /// Benefit of the step.
    pub(super) purpose: &'static str,
    /// The command to run, or to start Cellblock with.
    pub(super) command: &'static str,
}

/// A setting of the kernel that can prevent user namespaces.
#[derive(Debug)]
struct Setting {
    path: &'static str,
    preventing: &'static str,
    spares_root: bool,
    step: NextStep,
}

static SETTINGS: [Setting; 3] = [
    Setting {
        path: "/proc/sys/user/max_user_namespaces",
        preventing: "0",
        spares_root: false,
        step: NextStep {
            purpose: "allow user namespaces",
            command: "sudo sysctl -w user.max_user_namespaces=65536",
        },
    },
    Setting {
        path: "/proc/sys/kernel/unprivileged_userns_clone",
        preventing: "0",
        spares_root: true,
        step: NextStep {
            purpose: "allow user namespaces for ordinary users",
            command: "sudo sysctl -w kernel.unprivileged_userns_clone=1",
        },
    },
    Setting {
        path: "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        preventing: "1",
        spares_root: true,
        step: NextStep {
            purpose: "permit this program user namespaces under AppArmor; inside a container, do this on \
                      the host",
            command: "cellblock doctor --apparmor-profile | sudo tee /etc/apparmor.d/cellblock && sudo \
                      apparmor_parser --replace /etc/apparmor.d/cellblock",
        },
    },
];

/// Facts that decide which steps help.
#[derive(Debug, Default)]
pub(super) struct Facts {
    enclosure: Option<Enclosure>,
    root: bool,
    /// Settings that prevent user namespaces.
    preventing: Vec<&'static Setting>,
}

impl Facts {
    pub(super) fn gather() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self::of(Enclosure::around(), rustix::process::geteuid().is_root(), read)
    }

    fn of(enclosure: Option<Enclosure>, root: bool, read: impl Fn(&str) -> String) -> Self {
        let prevents = |it: &&Setting| read(it.path).trim() == it.preventing && !(root && it.spares_root);
        Self {
            enclosure,
            root,
            preventing: SETTINGS.iter().filter(prevents).collect(),
        }
    }

    /// Lists the steps for what is not active.
    pub(super) fn steps(&self, protections: &[ProtectionReport]) -> Vec<NextStep> {
        let lacks = |names: &[&str]| {
            protections
                .iter()
                .any(|it| names.contains(&it.name.as_str()) && !["active", "disabled"].contains(&it.state))
        };
        let mut steps = Vec::new();
        let mut add = |purpose, command| steps.push(NextStep { purpose, command });
        if lacks(&["user_namespace", "mount_namespace", "uts_namespace"]) {
            for setting in &self.preventing {
                add(setting.step.purpose, setting.step.command);
            }
            match self.enclosure {
                Some(Enclosure::Docker) => add(
                    "permit sandboxes in the container",
                    "docker run --security-opt seccomp=deploy/seccomp.json --security-opt \
                     systempaths=unconfined …",
                ),
                Some(Enclosure::Podman) => add(
                    "permit sandboxes in the container",
                    "podman run --security-opt seccomp=deploy/seccomp.json --security-opt unmask=ALL …",
                ),
                Some(Enclosure::Filter) => add(
                    "permit the system calls of sandboxes; in Kubernetes, in the pod's `securityContext`",
                    "seccompProfile: {type: Localhost, localhostProfile: seccomp.json}, procMount: Unmasked",
                ),
                None => {}
            }
        }
        if self.enclosure.is_none() && !self.root {
            if lacks(&["own_user_id"]) {
                add(
                    "give each sandbox a user id of its own (with numbers that no other user has)",
                    "sudo apt install uidmap && sudo usermod --add-subuids 100000-165535 --add-subgids \
                     100000-165535 \"$USER\"",
                );
            }
            if lacks(&["memory_cgroup", "process_cgroup", "cpu_cgroup"]) {
                add(
                    "limit memory and processes by cgroups",
                    "systemd-run --user --scope -p Delegate=yes cellblock …",
                );
            }
        }
        if lacks(&["landlock", "landlock_scopes"]) {
            add("boot a newer kernel with Landlock", "uname -r    # 6.12 or newer");
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use cellblock_sandbox::jail::protection::Demand;

    use super::*;

    fn commands(facts: &Facts, lacking: &[&str]) -> Vec<&'static str> {
        let report = |name: &&str| ProtectionReport {
            name: (*name).to_owned(),
            state: "missing",
            demand: Demand::Strict,
            reason: None,
            remedy: None,
        };
        let protections: Vec<_> = lacking.iter().map(report).collect();
        facts
            .steps(&protections)
            .into_iter()
            .map(|it| it.command)
            .collect()
    }

    #[test]
    fn a_setting_that_prevents_namespaces_is_changed_by_its_own_command() {
        let ubuntu = |path: &str| {
            if path.contains("apparmor") {
                "1\n"
            } else {
                "32768\n"
            }
            .to_owned()
        };
        let restricted = Facts::of(None, false, ubuntu);
        assert_eq!(
            commands(&restricted, &["user_namespace"]),
            [
                "cellblock doctor --apparmor-profile | sudo tee /etc/apparmor.d/cellblock && sudo \
                 apparmor_parser --replace /etc/apparmor.d/cellblock"
            ]
        );
        assert_eq!(commands(&restricted, &["seccomp"]), [""; 0]);
        let root = Facts::of(None, true, ubuntu);
        assert_eq!(commands(&root, &["user_namespace"]), [""; 0]);
    }

    #[test]
    fn a_container_is_started_again_with_its_engines_flags() {
        let docker = Facts {
            enclosure: Some(Enclosure::Docker),
            ..Facts::default()
        };
        let [command] = commands(&docker, &["mount_namespace", "memory_cgroup"])[..] else {
            panic!("one step");
        };
        assert!(
            command.starts_with("docker run ") && command.contains("systempaths=unconfined"),
            "{command}"
        );
    }

    #[test]
    fn an_ordinary_user_gets_ids_and_cgroups() {
        let commands = commands(&Facts::default(), &["own_user_id", "cpu_cgroup"]);
        assert!(
            commands[0].contains("usermod") && commands[1].contains("Delegate=yes"),
            "{commands:?}"
        );
    }
}
