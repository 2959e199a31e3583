//! Sandboxes in virtual machines.

use std::path::PathBuf;

use cellblock_remote::RemoteBackend;
use cellblock_sandbox::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::WallConfig;

/// How virtual machines are run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MicrovmOptions {
    /// The QEMU program; by default the one on `PATH`.
    pub qemu: Option<PathBuf>,
    /// The guest's kernel; by default the newest one below `/boot`.
    pub kernel: Option<PathBuf>,
    /// Whether machines may be emulated where KVM does not work. Emulation is slow, and QEMU does
    /// not consider it a security boundary.
    pub emulation: bool,
}

/// Starts the backend.
pub async fn start(_config: WallConfig) -> Result<RemoteBackend> {
    Err(cellblock_sandbox::Error::missing_protection(
        "this build has no microVM backend".to_owned(),
    ))
}

/// Returns what would run here, or what is missing and how to get it.
pub async fn probe(_options: &MicrovmOptions) -> Result<String> {
    Err(cellblock_sandbox::Error::missing_protection(
        "this build has no microVM backend".to_owned(),
    ))
}
