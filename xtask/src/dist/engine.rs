//! The container engine of this machine.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Result;

use super::Release;
use crate::spawn;

/// The program of an engine. Both take the same arguments, except one.
#[derive(Debug, Clone, Copy)]
pub(super) enum Engine {
    Podman,
    Docker,
}

impl Engine {
    /// Finds one that answers.
    pub(super) fn find() -> Option<Self> {
        [Self::Podman, Self::Docker].into_iter().find(|engine| {
            let mut version = engine.command();
            version.arg("version").stdout(Stdio::null()).stderr(Stdio::null());
            version.status().is_ok_and(|status| status.success())
        })
    }

    /// Returns the name of its program.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Podman => "podman",
            Self::Docker => "docker",
        }
    }

    /// Returns the option that leaves `/proc` uncovered.
    fn unmasked(self) -> &'static str {
        match self {
            Self::Podman => "unmask=ALL",
            Self::Docker => "systempaths=unconfined",
        }
    }

    pub(super) fn command(self) -> Command {
        Command::new(self.name())
    }

    /// Runs a script in a container in which sandboxes have all protections. The script and the
    /// files lie in the container's root, each under its own name.
    pub(super) fn run(self, release: &Release, script: &Path, files: &[&Path]) -> Result<()> {
        let inside = |path: &Path| format!("/{}", path.file_name().unwrap_or_default().to_string_lossy());
        let profile = release.root.join("deploy/seccomp.json");
        let mut command = self.command();
        command
            .args([
                "run",
                "--rm",
                "--network",
                "host",
                "--security-opt",
                self.unmasked(),
            ])
            .arg("--security-opt")
            .arg(format!("seccomp={}", profile.display()));
        for path in [&[script], files].concat() {
            let mount = format!("{}:{}:ro", path.display(), inside(path));
            command.args(["--volume", &mount]);
        }
        command.arg(base()).arg(inside(script));
        spawn(command.args(files.iter().map(|path| inside(path))))
    }
}

/// Returns the Debian to start from: `CONTAINER_BASE` names another one, for machines that cannot
/// reach a registry.
pub(super) fn base() -> String {
    std::env::var("CONTAINER_BASE").unwrap_or_else(|_| "debian:bookworm-slim".to_owned())
}
