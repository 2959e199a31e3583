//! A run's or a server's side of a warm host: using one that is there, or going on alone and
//! starting one for the next run.

use std::time::Duration;

use cellblock_artifact::Store;
use cellblock_image::{Home, OpenImage};
use cellblock_interpreter::Interpreter;
use cellblock_interpreter::builder::Lack;
use cellblock_interpreter::limits::Limits;
use cellblock_interpreter::remote::{LocalConfig, RemoteBackend, unreachable};
use cellblock_sandbox::jail::protection::Demands;
use cellblock_sandbox::pool::PoolConfig;
use cellblock_settings::clock;
use tokio::time::timeout;

use super::key;
use super::setting::WarmSetting;
use crate::error::Result;
use crate::session::client::HostExchange;
use crate::session::place::{HeldLock, Places, SessionPlace};
use crate::session::plan::WarmPlan;
use crate::session::spawn;
use crate::session::wire::HostCommand;
use crate::session_error::HostKind;

/// Maximum time for a host to answer, after which a run goes on without it.
const PATIENCE: Duration = Duration::from_secs(1);

/// Requirements of a run or a server for a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostRequirements<'a> {
    pub(crate) home: &'a Home,
    pub(crate) image: &'a OpenImage,
    /// Name that the user gave for the image.
    pub(crate) image_name: &'a str,
    pub(crate) demands: &'a Demands,
}

impl HostRequirements<'_> {
    /// Returns an interpreter whose sandboxes the host has. `None` if there is no host, or it
    /// cannot be used; then this starts one for the runs after this one, if the setting says so.
    pub(crate) async fn interpreter(
        &self,
        setting: WarmSetting,
        limits: &Limits,
        store: &Store,
    ) -> Option<Interpreter> {
        let backend = self.attach(setting).await?;
        Some(Interpreter::start_local(
            backend,
            self.image.clone(),
            limits.clone(),
            PoolConfig::default().acquire_timeout,
            store.clone(),
        ))
    }

    /// Returns the sandboxes of the host, as [`interpreter`](Self::interpreter) does.
    pub(crate) async fn attach(&self, setting: WarmSetting) -> Option<RemoteBackend> {
        if setting == WarmSetting::Off {
            return None;
        }
        match timeout(PATIENCE, self.connect()).await {
            Ok(Ok(Some(backend))) => return Some(backend),
            Ok(Ok(None)) => {}
            Ok(Err(error)) => {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "running without the warm host"
                );
            }
            Err(_) => tracing::debug!("running without the warm host, which does not answer"),
        }
        if let WarmSetting::Start(idle) = setting
            && let Err(error) = self.leave_behind(idle)
        {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "could not start a warm host"
            );
        }
        None
    }

    /// Connects to the host; `None` if there is none.
    async fn connect(&self) -> Result<Option<RemoteBackend>> {
        // Looking for a host leaves nothing behind.
        if !self.home.root().join(HostKind::Warm.folder()).exists() {
            return Ok(None);
        }
        let place = self.place()?;
        if !place.has_socket() {
            return Ok(None);
        }
        let name = format!("warm host `{}`", place.id());
        let local = LocalConfig {
            name: name.clone(),
            backend: "process",
            wall: None,
            lacks: &[Lack::Checkpoints, Lack::Forks],
            sends_layers: false,
            suspends: false,
            open: std::sync::Arc::new(move || {
                let (place, name) = (place.clone(), name.clone());
                Box::pin(async move {
                    let asked = HostExchange::ask_now(&place, &HostCommand::Sandbox).await;
                    let asked = asked.map_err(|error| unreachable(&name, error))?;
                    Ok(asked.into_stream().into())
                })
            }),
        };
        let manifest = self.image.manifest().clone();
        let backend = RemoteBackend::start_local(local, self.demands.clone(), manifest).await?;
        Ok(Some(backend))
    }

    /// The place of the host, whether there is one or not.
    pub(crate) fn place(&self) -> Result<SessionPlace> {
        let id = key::of(self.image.id(), self.demands)?;
        Ok(Places::warm(self.home)?.place(&id))
    }

    fn leave_behind(&self, idle: Duration) -> Result<()> {
        if let Some((place, held)) = self.claim(idle)? {
            spawn::leave_behind(self.home, &place, &held)?;
        }
        Ok(())
    }

    /// Makes the directory of a host with its plan; `None` if there is a host.
    pub(crate) fn claim(&self, idle: Duration) -> Result<Option<(SessionPlace, HeldLock)>> {
        let places = Places::warm(self.home)?;
        let Some((place, held)) = places.create_as(&key::of(self.image.id(), self.demands)?)? else {
            return Ok(None);
        };
        let plan = WarmPlan {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            image: self.image.id().to_owned(),
            image_name: self.image_name.to_owned(),
            idle,
            demands: self.demands.clone(),
            started: clock::unix_seconds(),
        };
        place.set_plan(&plan)?;
        Ok(Some((place, held)))
    }
}
