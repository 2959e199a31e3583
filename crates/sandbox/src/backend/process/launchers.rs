//! The current launcher, and its replacement when it has died: a backend outlives its launcher.

use std::path::PathBuf;
use std::sync::Arc;

use cellblock_guest::launcher::control::Launch;
use cellblock_jail::ids::KeepIds;
use parking_lot::Mutex;

use super::launcher::Launcher;
use super::{ProcessConfig, frozen, ids};
use crate::error::Result;

/// Starts launchers, one at a time.
#[derive(Debug)]
pub(super) struct Launchers {
    config: ProcessConfig,
    current: Mutex<Arc<Launcher>>,
    /// Locked while a launcher starts, so that callers who find the old one dead start only one
    /// together.
    starting: tokio::sync::Mutex<()>,
}

impl Launchers {
    /// Starts the first launcher.
    pub(super) async fn start(config: &ProcessConfig) -> Result<Self> {
        Ok(Self {
            config: config.clone(),
            current: Mutex::new(Arc::new(launch(config).await?)),
            starting: tokio::sync::Mutex::new(()),
        })
    }

    /// Returns the launcher that was started last, running or not.
    pub(super) fn current(&self) -> Arc<Launcher> {
        Arc::clone(&self.current.lock())
    }

    /// Returns a running launcher: the current one, or a replacement. Everything in the old one is
    /// gone.
    pub(super) async fn alive(&self) -> Result<Arc<Launcher>> {
        if let Some(launcher) = self.if_alive() {
            return Ok(launcher);
        }
        let _alone = self.starting.lock().await;
        if let Some(launcher) = self.if_alive() {
            return Ok(launcher);
        }
        tracing::warn!("the launcher has exited; starting another");
        let launcher = Arc::new(launch(&self.config).await?);
        *self.current.lock() = Arc::clone(&launcher);
        Ok(launcher)
    }

    fn if_alive(&self) -> Option<Arc<Launcher>> {
        Some(self.current()).filter(|launcher| !launcher.is_gone())
    }
}

async fn launch(config: &ProcessConfig) -> Result<Launcher> {
    let (ids, held) = if config.walled {
        (cellblock_jail::walled::ids(), None)
    } else {
        ids::choose()?
    };
    let mut launch = describe(config, ids);
    frozen::prepare(config, &mut launch);
    Launcher::start(config.launcher.as_deref(), &launch, held).await
}

/// Returns the first packet of a launcher.
pub(super) fn describe(config: &ProcessConfig, ids: KeepIds) -> Launch {
    Launch {
        ids,
        demands: config.demands.clone(),
        image: config.image.clone(),
        layers: config.layers.clone(),
        bytecode: config.bytecode.clone(),
        preload: config.preload.clone(),
        scratch: scratch(config),
        walled: config.walled,
        snapshot: config.snapshot,
        frozen: None,
    }
}

/// Returns the parent directory for rooms without namespaces: beside the layers, in the data
/// directory.
fn scratch(config: &ProcessConfig) -> PathBuf {
    let home = config.layers.as_ref().and_then(|layers| layers.parent());
    home.map_or_else(
        || std::env::temp_dir().join(format!("cellblock-rooms-{}", rustix::process::geteuid().as_raw())),
        |home| home.join("rooms"),
    )
}
