//! The plan of a session or of a warm host: its image, its policy and its limits.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use cellblock_interpreter::egress::AllowRule;
use cellblock_interpreter::session::hibernate::OnIdle;
use cellblock_interpreter::toolset::ToolsetKind;
use cellblock_interpreter::walls::WallOptions;
use cellblock_sandbox::backend::BackendKind;
use cellblock_sandbox::jail::protection::{Demand, Demands, Protection};
use cellblock_sandbox::limits::NetworkPolicy;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Session that a host opens. Its paths are absolute, because the host's working directory is `/`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionPlan {
    /// The tools.
    pub(crate) toolset: ToolsetKind,
    /// Profile with which the model works.
    pub(crate) profile: SessionProfile,
    /// The image's id.
    pub(crate) image: String,
    /// Name that the user gave for it.
    pub(crate) image_name: String,
    /// The sandbox's memory.
    pub(crate) memory_bytes: Option<u64>,
    /// Packages in addition to those of the image.
    #[serde(default)]
    pub(crate) requirements: Vec<String>,
    /// Files that are shown in `/tmp/data`.
    pub(crate) datasets: Vec<SessionDataset>,
    /// Directory for files that commands leave in `/tmp/output`.
    pub(crate) out: PathBuf,
    /// Idle timeout of the session.
    pub(crate) idle: Duration,
    /// Action at the idle timeout.
    #[serde(default)]
    pub(crate) on_idle: OnIdle,
    /// Demands for each protection.
    pub(crate) demands: BTreeMap<Protection, Demand>,
    /// The backend, which was chosen when the session was started.
    #[serde(default)]
    pub(crate) backend: BackendKind,
    /// The network inside the sandbox.
    #[serde(default)]
    pub(crate) network: NetworkPolicy,
    /// Hosts that code reaches, with the network `egress`.
    #[serde(default)]
    pub(crate) egress: Vec<AllowRule>,
    /// Whether microVMs may be emulated.
    #[serde(default)]
    pub(crate) emulation: bool,
    /// Time of its start, in seconds since 1970.
    pub(crate) started: u64,
}

/// Maximum time for which a session is kept that was hibernated because it was idle.
const HIBERNATION: Duration = Duration::from_hours(24);

impl SessionPlan {
    /// Returns how long the session lives while nothing is asked of it.
    pub(crate) fn lifetime(&self) -> Duration {
        match self.on_idle {
            OnIdle::End => self.idle,
            OnIdle::Hibernate => self.idle.saturating_add(HIBERNATION),
        }
    }

    /// Returns the demands for each protection.
    pub(crate) fn demands(&self) -> Demands {
        Demands(self.demands.clone())
    }

    /// Returns the options for machines of the backend.
    pub(crate) fn walls(&self) -> WallOptions {
        let mut walls = WallOptions::default();
        walls.microvm.emulation = self.emulation;
        walls
    }
}

/// Plan of a warm host. Other versions of the program read it too, so unknown fields are ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct WarmPlan {
    /// Version of the program that started the host.
    pub(crate) version: String,
    /// The image's id.
    pub(crate) image: String,
    /// Name by which the user selected the image.
    pub(crate) image_name: String,
    /// Time without a run after which the host ends.
    pub(crate) idle: Duration,
    /// Demands for each protection, if they differ from the default.
    pub(crate) demands: Demands,
    /// Time of its start, in seconds since 1970.
    pub(crate) started: u64,
}

/// A file with a name in the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionDataset {
    /// Name in the session.
    pub(crate) name: String,
    /// Path on the host.
    pub(crate) path: PathBuf,
    /// Whether a Parquet or Arrow file is to appear as CSV.
    pub(crate) as_csv: bool,
}

/// Profile with which the model works, and the image for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SessionProfile {
    /// The default image and its libraries.
    #[default]
    Default,
    /// The image `polars`, and a prompt that asks for Polars.
    Polars,
}
