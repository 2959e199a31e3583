//! The sandboxes of a server that outlives warm hosts.

use cellblock_image::OpenImage;
use cellblock_interpreter::builder::InterpreterBuilder;
use cellblock_interpreter::{Error as InterpreterError, Interpreter};
use cellblock_sandbox::backend::{Backend, BoxFuture, Sandbox};
use cellblock_sandbox::error::{Blame, Effect, Error, Result};
use cellblock_sandbox::jail::protection::{Demands, Report};
use cellblock_sandbox::limits::Limits;
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use super::attach::HostRequirements;
use super::setting::WarmSetting;

/// Takes each sandbox from the warm host that is there at that time, like a run. If there is none,
/// this process makes the sandbox.
#[derive(Debug)]
pub(crate) struct WarmBackend {
    image: OpenImage,
    image_name: String,
    demands: Demands,
    setting: WarmSetting,
    alone: InterpreterBuilder,
    /// Started with the first sandbox for which there was no host.
    own: OnceCell<Interpreter>,
    /// Of the last sandbox.
    report: Mutex<Report>,
}

impl WarmBackend {
    /// Returns the backend if there is a host; `alone` is for sandboxes without one. `None` if this
    /// process had better start alone.
    pub(crate) async fn attach(
        wanted: &HostRequirements<'_>,
        setting: WarmSetting,
        alone: &InterpreterBuilder,
    ) -> Option<Self> {
        let host = wanted.attach(setting).await?;
        Some(Self {
            image: wanted.image.clone(),
            image_name: wanted.image_name.to_owned(),
            demands: wanted.demands.clone(),
            setting,
            alone: alone.clone().pool(0),
            own: OnceCell::new(),
            report: Mutex::new(host.report()),
        })
    }

    fn wanted(&self) -> HostRequirements<'_> {
        HostRequirements {
            home: self.image.home(),
            image: &self.image,
            image_name: &self.image_name,
            demands: &self.demands,
        }
    }

    async fn make(&self, limits: &Limits) -> Result<Box<dyn Sandbox>> {
        if let Some(host) = self.wanted().attach(self.setting).await {
            match host.create(limits).await {
                Err(error) if error.blame() == Blame::Backend => {
                    tracing::debug!(
                        error = &error as &dyn std::error::Error,
                        "making a sandbox without the warm host"
                    );
                }
                made => return self.made(made, &host),
            }
        }
        let own = self.own().await?.backend();
        self.made(own.create(limits).await, own)
    }

    fn made(&self, made: Result<Box<dyn Sandbox>>, by: &dyn Backend) -> Result<Box<dyn Sandbox>> {
        *self.report.lock() = by.report();
        made
    }

    async fn own(&self) -> Result<&Interpreter> {
        let starting = self.own.get_or_try_init(|| self.alone.clone().build()).await;
        starting.map_err(|error| match error {
            InterpreterError::Sandbox(error) => error,
            other => Error::of_backend(other.blame(), other.retry(), Effect::None, other),
        })
    }

    async fn warm(&self) -> Result<()> {
        match self.wanted().attach(self.setting).await {
            Some(_) => Ok(()),
            None => self.own().await?.backend().warmed().await,
        }
    }
}

impl Backend for WarmBackend {
    fn name(&self) -> &'static str {
        "process"
    }

    fn report(&self) -> Report {
        let report = self.report.lock();
        report.clone()
    }

    fn create<'a>(&'a self, limits: &'a Limits) -> BoxFuture<'a, Result<Box<dyn Sandbox>>> {
        Box::pin(self.make(limits))
    }

    fn warmed(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.warm())
    }
}
