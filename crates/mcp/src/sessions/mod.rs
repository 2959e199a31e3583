//! Sessions by their handles: each belongs to the owner who made it, and expires.

use std::future::pending;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use cellblock_interpreter::connector::Connector;
use cellblock_interpreter::hosting::{HostingError, HostingLimits, Owner, Permit, Registry};
use cellblock_interpreter::limits::Limits;
use cellblock_interpreter::mint;
use cellblock_interpreter::project::Project;
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::session::fork::ForkOptions;
use cellblock_interpreter::workbench::DatasetSource;
use cellblock_interpreter::{Error, Interpreter, Session};
use tokio_util::task::AbortOnDropHandle;

use crate::options::Options;
use crate::refusal::{Refusal, named};

mod entry;
mod made;

pub(crate) use entry::{McpSession, SessionEntry, SessionTurn, Use};
pub(crate) use made::MadeArtifact;

/// Handles that a refusal lists.
const LISTED: usize = 20;

/// All sessions of a server.
#[derive(Debug)]
pub(crate) struct McpSessions {
    pub(crate) registry: Arc<Registry<McpSession>>,
    options: Options,
    _sweep: AbortOnDropHandle<()>,
}

impl McpSessions {
    /// None yet. Those that expire are closed by a task that ends with this.
    pub(crate) fn new(options: &Options) -> Self {
        let registry = Arc::new(Registry::new(HostingLimits {
            sessions: options.max_sessions,
            per_owner: options.max_sessions_per_key,
            ..HostingLimits::default()
        }));
        let swept = Arc::clone(&registry);
        let sweep = tokio::spawn(async move { swept.sweep(pending()).await });
        Self {
            registry,
            options: options.clone(),
            _sweep: AbortOnDropHandle::new(sweep),
        }
    }

    /// An owner's session.
    pub(crate) fn find(&self, owner: &Owner, handle: &str) -> Result<Use, Refusal> {
        self.registry.hold(owner.name(), handle).ok_or_else(|| {
            Refusal::new(format!(
                "there is no session {:?}: it has expired, was closed, or never was. {}",
                named(handle),
                self.known(owner)
            ))
        })
    }

    /// A new session. Its sandbox is made by the first call that needs it.
    pub(crate) async fn create(&self, interpreter: &Interpreter, owner: &Owner) -> Result<Use, Refusal> {
        let handle = mint("sess_");
        let refused = |error| self.refusal(error, owner);
        let place = self.registry.reserve(owner.name(), &handle).map_err(refused)?;
        let permit = self.options.meter.session(owner).await?;
        let connectors = self.options.connectors(owner).await?;
        let project = self.options.project.as_deref().map(|name| {
            let store = interpreter.store().clone();
            Project::new(store, owner.name(), name)
        });
        let network = self.options.meter.network(owner, self.options.network).await?;
        let mut options = SessionOptions {
            limits: (!network.is_none()).then(|| Limits {
                network,
                ..interpreter.limits().clone()
            }),
            idle: self.options.idle_timeout,
            on_idle: self.options.on_idle,
            hibernation: self.options.hibernation_timeout,
            id: Some(handle.clone()),
            guard: self.options.guard,
            setup: self.options.setup.clone(),
            connectors: connectors.clone(),
            fetch_allowance: self.options.meter.fetch_allowance(owner),
            runs: self.options.meter.runs(owner),
            project: project.transpose()?,
            egress: self.options.egress.clone(),
            ..SessionOptions::default()
        };
        for name in self.options.toolsets.iter().flat_map(|kind| kind.prelude) {
            if !options.prelude.iter().any(|known| known == name) {
                options.prelude.push((*name).to_owned());
            }
        }
        let session = interpreter.session(options);
        let mut hosted = self
            .furnish(interpreter, session, &handle, connectors, permit)
            .await?;
        for (name, path) in &self.options.datasets {
            let source = DatasetSource::File(path.clone());
            let mounted = hosted.session.add_dataset(name.clone(), source).await;
            hosted.datasets.push(mounted.map_err(|error| {
                tracing::error!(
                    name,
                    error = &error as &dyn std::error::Error,
                    "could not show a dataset"
                );
                Refusal::new(format!(
                    "the dataset `{name}`, which this server's operator offers, cannot be read: tell the user"
                ))
            })?);
        }
        place.fill(hosted).map_err(refused)
    }

    /// New sessions that begin with the variables and files of `parent`: all that `fork` asks for, or none.
    pub(crate) async fn fork(
        &self,
        interpreter: &Interpreter,
        owner: &Owner,
        parent: &Use,
        mut fork: ForkOptions,
    ) -> Result<Vec<Use>, Refusal> {
        fork.check().map_err(Error::from)?;
        fork.ids = (0..fork.count).map(|_| mint("sess_")).collect();
        let handles = fork.ids.clone();
        let refused = |error| self.refusal(error, owner);
        let connectors = self.options.connectors(owner).await?;
        // Every place is taken before anything is made. Those that stay empty are free again.
        let mut places = Vec::new();
        for handle in &handles {
            let place = self.registry.reserve(owner.name(), handle).map_err(refused)?;
            places.push((place, self.options.meter.session(owner).await?));
        }
        let forks = parent.session.fork(fork).await?;
        let mut hosted = Vec::new();
        for ((handle, (place, permit)), session) in handles.iter().zip(places).zip(forks) {
            let mut fork = self
                .furnish(interpreter, session, handle, connectors.clone(), permit)
                .await?;
            fork.datasets.clone_from(&parent.datasets);
            hosted.push((place, fork));
        }
        let filled = hosted.into_iter().map(|(place, fork)| place.fill(fork));
        filled.collect::<Result<_, _>>().map_err(refused)
    }

    /// A session with the toolsets that are offered.
    async fn furnish(
        &self,
        interpreter: &Interpreter,
        session: Session,
        handle: &str,
        connectors: Vec<Arc<dyn Connector>>,
        permit: Permit,
    ) -> Result<McpSession, Refusal> {
        let mut terms = self.options.terms(handle);
        terms.connectors = connectors;
        let mut toolsets = Vec::new();
        for kind in &self.options.toolsets {
            toolsets.push((*kind, (kind.open)(interpreter, session.clone(), &terms).await?));
        }
        Ok(McpSession {
            session,
            toolsets,
            datasets: Vec::new(),
            _permit: permit,
            idle_timeout: self.options.lifetime(),
            made: Mutex::default(),
            cells: AtomicU64::default(),
        })
    }

    /// An owner's sessions, oldest first.
    pub(crate) fn of(&self, owner: &Owner) -> Vec<Arc<SessionEntry>> {
        self.registry.of(owner.name())
    }

    fn refusal(&self, error: HostingError, owner: &Owner) -> Refusal {
        Refusal::new(match error {
            HostingError::OwnerFull { held, limit } => format!(
                "there are {held} sessions, and no more than {limit} are allowed: go on in one of them by its handle, or close one. {}",
                self.known(owner)
            ),
            HostingError::Full { .. } => "this server has as many sessions as it may have: try again in a while, or go on in one of yours".to_owned(),
            HostingError::Closed | HostingError::Busy { .. } | HostingError::Ended | HostingError::Exists => {
                "no session is made any more".to_owned()
            }
        })
    }

    /// What a model can go on with.
    fn known(&self, owner: &Owner) -> String {
        let own = self.of(owner);
        if own.is_empty() {
            return "There are no sessions: leave `session` out of `run_python`, or call `create_session`, to begin one".to_owned();
        }
        let handles: Vec<_> = own.iter().rev().take(LISTED).map(|it| it.id.as_str()).collect();
        format!("Sessions, latest first: {}", handles.join(", "))
    }
}
