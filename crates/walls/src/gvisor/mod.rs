//! Sandboxes in gVisor.

use std::path::PathBuf;

use cellblock_remote::RemoteBackend;
use cellblock_sandbox::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::WallConfig;

/// How gVisor is run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GvisorOptions {
    /// The `runsc` program; by default the one on `PATH`.
    pub runsc: Option<PathBuf>,
}

/// Starts the backend.
pub async fn start(_config: WallConfig) -> Result<RemoteBackend> {
    Err(cellblock_sandbox::Error::missing_protection(
        "this build has no gVisor backend".to_owned(),
    ))
}

/// Returns what would run here, or what is missing and how to get it.
pub async fn probe(_options: &GvisorOptions) -> Result<String> {
    Err(cellblock_sandbox::Error::missing_protection(
        "this build has no gVisor backend".to_owned(),
    ))
}
