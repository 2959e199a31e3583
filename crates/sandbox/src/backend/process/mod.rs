//! The process backend: rooms made of namespaces, and kernels forked from a template. Requires only
//! Linux.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use cellblock_guest::launcher::control::ImageTree;
use cellblock_guest::launcher::control::Operation;
use cellblock_jail::protection::{Demands, Protection, Report};

use super::{Backend, BoxFuture, Sandbox};
use crate::error::{Result, SandboxErrorKind};
use crate::limits::Limits;

mod bytecode;
mod control;
mod frozen;
mod ids;
mod launcher;
mod launchers;
mod mounter;
mod room;
mod rooms;
mod slots;

use launchers::Launchers;
use rooms::Rooms;

pub use frozen::{FrozenConfig, FrozenState};
pub use ids::preview as preview_ids;

/// Configuration of a process backend.
#[derive(Clone, Debug)]
pub struct ProcessConfig {
    /// The image.
    pub image: ImageTree,
    /// Directory of requirement layers, visible read-only.
    pub layers: Option<PathBuf>,
    /// Directory for the kernel's bytecode, which must belong to this image alone. It is filled on
    /// the first start.
    pub bytecode: Option<PathBuf>,
    /// Modules that the template imports.
    pub preload: Vec<String>,
    /// Frozen template of the image, which is used if it exists and otherwise made in the background.
    pub frozen: Option<FrozenConfig>,
    /// Whether a spare room is created whenever one is taken.
    pub spare_room: bool,
    /// The policy's demand for each protection.
    pub demands: Demands,
    /// Program that `cellblock_guest` is linked into. By default this program.
    pub launcher: Option<PathBuf>,
    /// Whether this machine is one of gVisor's, whose wall replaces the protections that its kernel
    /// lacks. The first kernel imports `preload`, for a snapshot.
    pub walled: bool,
    /// Whether a snapshot of this machine is taken, from which each of its copies serves one
    /// sandbox: kernels that exist then seed themselves at their first message.
    pub snapshot: bool,
}

/// Creates sandboxes with this machine's own kernel.
#[derive(Clone, Debug)]
pub struct ProcessBackend {
    rooms: Arc<Rooms>,
}

/// Maximum time for the template to import the image's libraries on a busy machine.
const WARM_LIMIT: Duration = Duration::from_mins(3);

impl ProcessBackend {
    /// Starts the launcher and, inside its keep, the template. Returns when rooms can be created.
    pub async fn start(config: &ProcessConfig) -> Result<Self> {
        bytecode::prepare(config).await;
        Self::launch(config).await
    }

    async fn launch(config: &ProcessConfig) -> Result<Self> {
        if config.walled {
            cellblock_jail::walled::declare().map_err(|error| SandboxErrorKind::MissingProtection {
                reason: cellblock_jail::error::chain(&error),
            })?;
        }
        Ok(Self {
            rooms: Arc::new(Rooms::new(Launchers::start(config).await?, config.spare_room)),
        })
    }

    /// Returns the state of the frozen template that a start with this configuration would use.
    pub fn frozen(config: &ProcessConfig) -> FrozenState {
        frozen::state(config)
    }

    /// Makes that frozen template if there is none, instead of leaving that to the next start;
    /// returns its state.
    pub async fn freeze(config: &ProcessConfig) -> Result<FrozenState> {
        bytecode::prepare(config).await;
        frozen::make(config).await
    }

    /// Returns the modules of the image that the template failed to import, with reasons; empty
    /// until it is warm.
    pub fn failed_modules(&self) -> Vec<String> {
        self.rooms.launchers.current().failed_modules()
    }

    /// Returns the process id of the launcher, which changes if the launcher dies and is replaced.
    pub fn launcher_pid(&self) -> Option<u32> {
        self.rooms.launchers.current().pid()
    }

    /// Sets the host name of the sandboxes that exist and of those that are created afterward.
    pub async fn name_host(&self, name: &str) -> Result<()> {
        let launcher = self.rooms.launchers.alive().await?;
        let operation = Operation::NameHost {
            name: name.to_owned(),
        };
        launcher.ask(operation, &[], "set a host name").await.map(drop)
    }

    /// Takes a spare room with these limits, or creates one; meanwhile a spare is created for the
    /// next caller, if the backend keeps one.
    async fn take_room(&self, limits: &Limits) -> Result<Box<dyn Sandbox>> {
        let report = self.rooms.launchers.alive().await?.report();
        let limits = limits.room(
            report.is_active(Protection::MemoryCgroup),
            report.is_active(Protection::ProcessCgroup),
            report.is_active(Protection::OwnUserId),
        );
        let spare = self.rooms.take_spare(&limits);
        self.rooms.refill(limits.clone());
        match spare {
            Some(room) => Ok(Box::new(room)),
            None => Ok(Box::new(self.rooms.make(limits).await?)),
        }
    }
}

impl Backend for ProcessBackend {
    fn name(&self) -> &'static str {
        "process"
    }

    fn report(&self) -> Report {
        self.rooms.launchers.current().report()
    }

    fn create<'a>(&'a self, limits: &'a Limits) -> BoxFuture<'a, Result<Box<dyn Sandbox>>> {
        Box::pin(self.take_room(limits))
    }

    fn warmed(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            let launcher = self.rooms.launchers.alive().await?;
            tokio::time::timeout(WARM_LIMIT, launcher.warmed())
                .await
                .map_err(|_| SandboxErrorKind::TooLate {
                    what: "the image's template",
                    limit: WARM_LIMIT,
                })?
        })
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the form that map_err takes")]
fn internal(error: cellblock_jail::Error) -> crate::Error {
    SandboxErrorKind::Launcher {
        action: "prepare descriptors",
        reason: cellblock_jail::error::chain(&error),
    }
    .into()
}
