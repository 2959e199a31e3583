//! Backends whose wall is not the host's kernel: gVisor and microVMs, each from a snapshot.
//!
//! ```text
//! RemoteBackend ─ mux ══ socket ══ a runsc sandbox, or a virtual machine ══ mux ─ the process backend inside
//! ```
//!
//! A sandbox is a machine of its own, restored from the snapshot of a template that has imported the
//! image's libraries and has never run user code. Inside, the same executable serves exactly one
//! sandbox over the protocol of [`cellblock_remote`]. Before the protocol starts, the
//! [`wake`] line gives the machine its own random numbers, time and name.

use std::path::PathBuf;
use std::time::Duration;

use cellblock_image::OpenImage;
use cellblock_remote::RemoteBackend;
use cellblock_sandbox::backend::BackendKind;
use cellblock_sandbox::jail::protection::Demands;
use cellblock_sandbox::{Error, Limits, Result};

mod choose;
pub mod gvisor;
pub mod inside;
mod machines;
pub mod microvm;
mod owner;
mod places;
mod program;
mod remembered;
mod running;
pub mod snapshot;
pub mod wake;

pub use choose::choose;

/// Maximum time for a restored machine to connect, and then to answer.
const RESTORE_LIMIT: Duration = Duration::from_mins(1);

/// Configuration of machines.
#[derive(Clone, Debug)]
pub struct WallConfig {
    /// The image that sandboxes start from.
    pub image: OpenImage,
    /// The `cellblock` executable, which runs inside, too.
    pub executable: PathBuf,
    /// The maximum limits of a sandbox.
    pub limits: Limits,
    /// Demands for each protection; one that the wall replaces is demanded only if it is named.
    pub demands: Demands,
    /// Options of machines.
    pub options: WallOptions,
}

/// Options of machines: programs and policies of this computer.
#[derive(Clone, Debug, Default)]
pub struct WallOptions {
    /// Options of the gVisor backend.
    pub gvisor: gvisor::GvisorOptions,
    /// Options of the microVM backend.
    pub microvm: microvm::MicrovmOptions,
    /// Maximum time for a restored machine to connect, and then to answer; by default a minute, which an
    /// emulated one on a busy computer may need.
    pub restore_timeout: Option<Duration>,
    /// Maximum size of the state of a hibernated session on disk; by default what its machine can
    /// have in memory.
    pub suspended_bytes: Option<u64>,
}

impl WallOptions {
    fn restore_limit(&self) -> Duration {
        self.restore_timeout.unwrap_or(RESTORE_LIMIT)
    }
}

/// Makes the template of a backend unless its snapshot exists, and returns the backend.
pub async fn start(kind: BackendKind, config: WallConfig) -> Result<RemoteBackend> {
    match kind {
        BackendKind::Gvisor => gvisor::start(config).await,
        BackendKind::Microvm => microvm::start(config).await,
        BackendKind::Process => Err(Error::request(
            "put a wall around the process backend, which has none",
        )),
    }
}

/// Returns what a backend would run here, such as `gVisor 20240729, platform systrap`, or what it is
/// missing and how to get it.
pub async fn probe(kind: BackendKind, options: &WallOptions) -> Result<String> {
    match kind {
        BackendKind::Process => Ok("processes, confined by this machine's kernel".to_owned()),
        BackendKind::Gvisor => gvisor::probe(&options.gvisor).await,
        BackendKind::Microvm => microvm::probe(&options.microvm).await,
    }
}
