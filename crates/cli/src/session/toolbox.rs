//! Tools of any kind as the service of a host.

use std::future::Future;
use std::sync::Arc;

use cellblock_interpreter::report;
use cellblock_interpreter::session::fork::ForkOptions;
use cellblock_interpreter::toolset::{ToolEvent, Toolset, ToolsetKind, ToolsetTerms};
use cellblock_interpreter::workbench::{DatasetMount, DatasetSource};
use cellblock_interpreter::{Interpreter, Session};
use serde_json::Value;
use tokio::sync::broadcast;

use super::plan::{SessionDataset, SessionPlan};
use super::wire::AddedDataset;
use crate::error::{Error, Result};

/// Events that may wait for a listener; one that is slower misses the oldest.
pub(crate) const EVENTS: usize = 1024;

/// Tools over one sandbox.
pub(crate) trait Toolbox: Send + Sync + 'static {
    /// Calls a tool. What it refuses is among its results.
    fn call(&self, tool: &str, arguments: Value) -> impl Future<Output = Result<Value>> + Send;

    /// Stops what runs in the sandbox.
    fn interrupt(&self);

    /// Returns a receiver of the events from here on.
    fn events(&self) -> broadcast::Receiver<ToolEvent>;

    /// Shows a file of the host in the sandbox.
    fn add_dataset(&self, dataset: &SessionDataset) -> impl Future<Output = Result<AddedDataset>> + Send;

    /// The section of a system prompt that tells a model of the tools and the data.
    fn prompt(&self) -> String;

    /// The session whose processes clients use.
    fn session(&self) -> Option<&Session>;

    /// Makes independent ones over sandboxes with the same state, one for each plan.
    fn fork(&self, plans: &[SessionPlan], reseed: bool) -> impl Future<Output = Result<Vec<Self>>> + Send
    where
        Self: Sized;

    /// Gives everything back; no call can be made any more.
    fn close(&self) -> impl Future<Output = cellblock_interpreter::Result<()>> + Send;
}

/// A toolset with what it stands on.
#[derive(Debug)]
pub(crate) struct OwnToolset {
    pub(crate) toolset: Arc<dyn Toolset>,
    pub(crate) session: Session,
    pub(crate) events: broadcast::Sender<ToolEvent>,
    /// Kind as which the toolset was opened.
    pub(crate) kind: ToolsetKind,
    pub(crate) terms: ToolsetTerms,
    /// Its launcher ends with it.
    pub(crate) interpreter: Interpreter,
}

impl Toolbox for OwnToolset {
    async fn call(&self, tool: &str, arguments: Value) -> Result<Value> {
        let mut watch = |event| {
            // Nobody has to listen.
            let _ = self.events.send(event);
        };
        let result = self.toolset.call(tool, arguments, &mut watch).await?;
        report::json(result).map_err(|error| Error::Refused(format!("write the result as JSON: {error}")))
    }

    fn interrupt(&self) {
        self.session.interrupt();
    }

    fn events(&self) -> broadcast::Receiver<ToolEvent> {
        self.events.subscribe()
    }

    async fn add_dataset(&self, dataset: &SessionDataset) -> Result<AddedDataset> {
        let path = dataset.path.clone();
        let source = if dataset.as_csv {
            DatasetSource::AsCsv(path)
        } else {
            DatasetSource::File(path)
        };
        let mounted = self.session.add_dataset(dataset.name.clone(), source).await?;
        Ok(added(&mounted))
    }

    fn prompt(&self) -> String {
        self.toolset.prompt()
    }

    fn session(&self) -> Option<&Session> {
        Some(&self.session)
    }

    async fn fork(&self, plans: &[SessionPlan], reseed: bool) -> Result<Vec<Self>> {
        let mut options = ForkOptions::new(plans.len());
        options.reseed = reseed;
        let mut forks = Vec::new();
        for (session, plan) in self.session.fork(options).await?.into_iter().zip(plans) {
            let terms = ToolsetTerms {
                output_dir: Some(plan.out.clone()),
                ..self.terms.clone()
            };
            forks.push(Self {
                toolset: (self.kind.open)(&self.interpreter, session.clone(), &terms).await?,
                session,
                events: broadcast::channel(EVENTS).0,
                kind: self.kind,
                terms,
                interpreter: self.interpreter.clone(),
            });
        }
        Ok(forks)
    }

    async fn close(&self) -> cellblock_interpreter::Result<()> {
        self.session.close().await?;
        self.toolset.close().await
    }
}

fn added(mounted: &DatasetMount) -> AddedDataset {
    let mut notes = Vec::new();
    let stem = mounted.name.rsplit_once('.').map_or(&*mounted.name, |it| it.0);
    if mounted.requested != stem && mounted.requested != mounted.name {
        notes.push(format!("`{}` is called `{}`", mounted.requested, mounted.name));
    }
    notes.extend(mounted.reason.clone());
    AddedDataset {
        path: mounted.path.clone(),
        notes,
    }
}
