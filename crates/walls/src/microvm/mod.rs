//! Sandboxes in virtual machines, which Firecracker or QEMU runs with KVM. Where that is allowed,
//! QEMU emulates them.
//!
//! ```text
//! host ── owner ── QEMU ── a kernel of its own
//!   └──── Unix socket ──── serial port ── cellblock inside ── the process backend
//! host ── owner ── jailer, Firecracker ── a kernel of its own
//!   └──── Unix socket ──── vsock ──────── cellblock inside ── the process backend
//! ```
//!
//! A template boots, imports the image's libraries, and waits for a message; its memory is a file. Each
//! sandbox is a machine that maps this file privately and loads the state of the template's
//! devices. It has a read-only disk, no network, and one stream to its host.

use std::path::PathBuf;

use cellblock_remote::RemoteBackend;
use cellblock_sandbox::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::WallConfig;
use crate::machines::{self, Wall};
use crate::remembered::AnswerCache;
use firecracker::Firecracker;
use qemu::Qemu;

pub mod boot;
mod cpio;
mod disk;
mod files;
mod firecracker;
mod kernel;
mod libraries;
mod qemu;
mod size;
mod trial;

/// Program that runs virtual machines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Vmm {
    /// Firecracker if it is on `PATH` or configured; otherwise QEMU.
    #[default]
    Auto,
    /// QEMU.
    Qemu,
    /// Firecracker, as root in its jailer.
    Firecracker,
}

/// Options of virtual machines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MicrovmOptions {
    /// Program that runs the machines.
    pub vmm: Vmm,
    /// The Firecracker program; by default the one on `PATH`.
    pub firecracker: Option<PathBuf>,
    /// Firecracker's jailer, which root must use; by default the one beside Firecracker or on `PATH`.
    pub jailer: Option<PathBuf>,
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
    let demands = config.demands.clone();
    match MachineProgram::find(&config.options.microvm).await? {
        MachineProgram::Qemu(qemu) => machines::start(qemu, config, demands).await,
        MachineProgram::Firecracker(firecracker) => machines::start(firecracker, config, demands).await,
    }
}

/// Returns what would run here, or what is missing and how to get it.
pub async fn probe(options: &MicrovmOptions) -> Result<String> {
    Ok(match MachineProgram::find(options).await? {
        MachineProgram::Qemu(qemu) => qemu.description(),
        MachineProgram::Firecracker(firecracker) => firecracker.description(),
    })
}

/// A program that was found and tried.
#[derive(Clone, Debug)]
enum MachineProgram {
    Qemu(Qemu),
    Firecracker(Firecracker),
}

/// Remembered results for options: trying a program takes seconds.
static KNOWN: AnswerCache<MicrovmOptions, MachineProgram> = AnswerCache::new();

impl MachineProgram {
    async fn find(options: &MicrovmOptions) -> Result<Self> {
        KNOWN.find(options, Self::look(options)).await
    }

    /// Looks for a program. Firecracker is never replaced by QEMU because it fails, except where
    /// emulation is allowed, which is weaker than everything else.
    async fn look(options: &MicrovmOptions) -> Result<Self> {
        let firecracker = match options.vmm {
            Vmm::Qemu => false,
            Vmm::Firecracker => true,
            Vmm::Auto => Firecracker::is_there(options),
        };
        if firecracker {
            match Firecracker::find(options).await {
                Ok(found) => return Ok(Self::Firecracker(found)),
                Err(error) if options.emulation && options.vmm == Vmm::Auto => {
                    tracing::warn!(%error, "machines are run by QEMU, because emulation is allowed");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Self::Qemu(Qemu::find(options).await?))
    }
}
