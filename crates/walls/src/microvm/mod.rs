//! Sandboxes in virtual machines, which QEMU runs with KVM or, where that is allowed, emulates.
//!
//! ```text
//! host ── owner ── QEMU ── a kernel of its own
//!   └──── Unix socket ──── serial port ── cellblock inside ── the process backend
//! ```
//!
//! A template boots, imports the image's libraries, and waits for a message; its memory is a file. Each
//! sandbox is a machine that maps this file privately and loads the state of the template's
//! devices. It has a read-only disk, no network, and one serial port.

use std::path::PathBuf;

use cellblock_remote::RemoteBackend;
use cellblock_sandbox::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::WallConfig;
use crate::machines::{self, Wall};
use qemu::Qemu;

pub mod boot;
mod cpio;
mod disk;
mod kernel;
mod libraries;
mod machine;
mod qemu;
mod qmp;

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
pub async fn start(config: WallConfig) -> Result<RemoteBackend> {
    let qemu = Qemu::find(&config.options.microvm).await?;
    let demands = config.demands.clone();
    machines::start(qemu, config, demands).await
}

/// Returns what would run here, or what is missing and how to get it.
pub async fn probe(options: &MicrovmOptions) -> Result<String> {
    Ok(Qemu::find(options).await?.description())
}
