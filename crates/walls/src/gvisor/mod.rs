//! Sandboxes in gVisor: a kernel in user space, `runsc`, answers the code's system calls.
//!
//! ```text
//! host ── owner ── runsc restore ── sentry (gVisor's kernel)
//!   └──────── Unix socket ────────── cellblock inside ── a room without namespaces ── the kernel
//! ```
//!
//! A template imports the image's libraries, its first kernel waits for a message, and `runsc
//! checkpoint` writes all of it to a snapshot. Each sandbox is a machine that is restored from it. When a
//! machine has connected to its host's socket and has got its own seed, it is used like any remote
//! sandbox.

use std::path::PathBuf;

use cellblock_image::Home;
use cellblock_remote::{RemoteBackend, unreachable};
use cellblock_sandbox::Result;
use cellblock_sandbox::jail::protection::Demands;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::WallConfig;
use crate::machines::{self, Wall};
use runsc::{Runsc, missing};

mod bundle;
mod machine;
mod runsc;

/// Options of gVisor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GvisorOptions {
    /// The `runsc` program; by default the one on `PATH`.
    pub runsc: Option<PathBuf>,
}

/// Starts the backend.
pub async fn start(config: WallConfig) -> Result<RemoteBackend> {
    let runsc = Runsc::find(config.options.gvisor.runsc.as_deref()).await?;
    runsc.try_out(config.image.home().root()).await?;
    std::fs::create_dir_all(config.image.home().layers())
        .map_err(|error| unreachable(Runsc::NAME, format!("prepare the image's layers: {error}")))?;
    let mut demands = Demands::walled();
    demands
        .0
        .extend(config.demands.0.iter().map(|(name, demand)| (*name, *demand)));
    machines::start(runsc, config, demands).await
}

/// Returns what would run here, or what is missing and how to get it.
pub async fn probe(options: &GvisorOptions) -> Result<String> {
    let runsc = Runsc::find(options.runsc.as_deref()).await?;
    let home = Home::find().map_err(|error| missing(&error.to_string()))?;
    runsc.try_out(home.root()).await?;
    Ok(runsc.description())
}
