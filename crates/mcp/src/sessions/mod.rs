//! Sessions by their handles: each belongs to the owner who made it, and expires.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use cellblock_interpreter::connector::Connector;
use cellblock_interpreter::hosting::{HostingError, HostingLimits, Owner, Permit, Registry, Reservation};
use cellblock_interpreter::limits::Limits;
use cellblock_interpreter::mint;
use cellblock_interpreter::project::Project;
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::session::fork::ForkOptions;
use cellblock_interpreter::workbench::DatasetSource;
use cellblock_interpreter::{Error, Interpreter, Session};
use parking_lot::Mutex;
use tokio_util::task::AbortOnDropHandle;

use crate::conversations::McpConversation;
use crate::options::Options;
use crate::refusal::{Refusal, named};

mod entry;
mod made;
mod users;

pub(crate) use entry::{McpSession, SessionEntry, SessionTurn, Use};
pub(crate) use made::MadeArtifact;
use users::SessionUsers;

/// Handles that a refusal lists.
const LISTED: usize = 20;
/// Minimum idle time of a session of another owner before it makes room.
const UNUSED: Duration = Duration::from_mins(1);

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

    /// A session that a call uses.
    pub(crate) fn find(
        &self,
        owner: &Owner,
        conversation: Option<&McpConversation>,
        handle: &str,
    ) -> Result<Use, Refusal> {
        let found = self.registry.hold(owner.name(), handle);
        let found = found.ok_or_else(|| self.missing(handle, conversation))?;
        found.users.enter(conversation);
        Ok(found)
    }

    /// An owner's session, for something that is not a call.
    pub(crate) fn of_owner(&self, owner: &Owner, handle: &str) -> Result<Use, Refusal> {
        let found = self.registry.hold(owner.name(), handle);
        found.ok_or_else(|| self.missing(handle, None))
    }

    /// Ends a conversation. Its sessions keep working for a while, for clients that open a
    /// conversation for each call.
    pub(crate) fn leave(&self, conversation: &McpConversation) {
        let mut own = self.of(conversation.owner());
        own.retain(|entry| entry.users.include(conversation));
        for entry in own {
            // The sweep looks at a session again once it is not held any more.
            let held = entry.hold();
            entry.users.leave(conversation);
            drop(held);
        }
    }

    fn missing(&self, handle: &str, conversation: Option<&McpConversation>) -> Refusal {
        Refusal::new(format!(
            "there is no session {:?}: it has expired, was closed, made room for another one, or never \
             existed. {}",
            named(handle),
            self.known(conversation)
        ))
    }

    /// A place for one more session of an owner. If there is none, an idle session makes room.
    async fn place<'a>(
        &'a self,
        owner: &'a Owner,
        handle: &'a str,
    ) -> Result<Reservation<'a, McpSession>, Refusal> {
        loop {
            let error = match self.registry.reserve(owner.name(), handle) {
                Ok(place) => return Ok(place),
                Err(error) => error,
            };
            let made = match error {
                HostingError::OwnerFull { .. } => self.make_room(owner, false).await,
                HostingError::Full { .. } => self.make_room(owner, true).await,
                _ => false,
            };
            if !made {
                return Err(refusal(error));
            }
        }
    }

    /// Leave to have one more session. If its owner has as many sandboxes as it may have, an idle
    /// session makes room, once.
    async fn permit(&self, owner: &Owner) -> Result<Permit, Refusal> {
        match self.options.meter.session(owner).await {
            Ok(permit) => Ok(permit),
            Err(_) if self.make_room(owner, false).await => Ok(self.options.meter.session(owner).await?),
            Err(denied) => Err(denied.into()),
        }
    }

    /// Ends the idle session that was not used for the longest time, first of all one whose
    /// conversations have ended; one of another owner only if `others` may make room, and if its
    /// owner seems to be done with it. Says whether there was one.
    async fn make_room(&self, owner: &Owner, others: bool) -> bool {
        let rank = |entry: &SessionEntry| (!entry.users.have_left(), entry.last_used());
        let own = |entry: &SessionEntry| entry.owner == owner.name();
        let mut idle = self.registry.idle_by(|entry| own(entry).then(|| rank(entry)));
        if others {
            let done = |entry: &SessionEntry| entry.users.have_left() || entry.idle() >= UNUSED;
            let done = |entry: &SessionEntry| (!own(entry) && done(entry)).then(|| rank(entry));
            idle.extend(self.registry.idle_by(done));
        }
        for entry in idle {
            if self.registry.take_idle(&entry) {
                tracing::info!(session = entry.id, "an idle session makes room for another one");
                self.registry.end(&entry).await;
                return true;
            }
        }
        false
    }

    /// A new session. Its sandbox is made by the first call that needs it.
    pub(crate) async fn create(
        &self,
        interpreter: &Interpreter,
        owner: &Owner,
        conversation: Option<&McpConversation>,
    ) -> Result<Use, Refusal> {
        let handle = mint("sess_");
        let place = self.place(owner, &handle).await?;
        let permit = self.permit(owner).await?;
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
            project: project.transpose()?,
            skills: self.options.skills(owner).await?,
            egress: self.options.egress.clone(),
            ..self.options.meter.granted(owner)
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
        hosted.users.enter(conversation);
        place.fill(hosted).map_err(refusal)
    }

    /// New sessions that begin with the variables and files of `parent`: all that `fork` asks for, or none.
    pub(crate) async fn fork(
        &self,
        interpreter: &Interpreter,
        owner: &Owner,
        conversation: Option<&McpConversation>,
        parent: &Use,
        mut fork: ForkOptions,
    ) -> Result<Vec<Use>, Refusal> {
        fork.check().map_err(Error::from)?;
        fork.ids = (0..fork.count).map(|_| mint("sess_")).collect();
        let handles = fork.ids.clone();
        let connectors = self.options.connectors(owner).await?;
        // Every place is taken before anything is made. Those that stay empty are free again.
        let mut places = Vec::new();
        for handle in &handles {
            let place = self.place(owner, handle).await?;
            places.push((place, self.permit(owner).await?));
        }
        let forks = parent.session.fork(fork).await?;
        let mut hosted = Vec::new();
        for ((handle, (place, permit)), session) in handles.iter().zip(places).zip(forks) {
            let mut fork = self
                .furnish(interpreter, session, handle, connectors.clone(), permit)
                .await?;
            fork.datasets.clone_from(&parent.datasets);
            fork.users.enter(conversation);
            hosted.push((place, fork));
        }
        let filled = hosted.into_iter().map(|(place, fork)| place.fill(fork));
        filled.collect::<Result<_, _>>().map_err(refusal)
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
            users: SessionUsers::default(),
            made: Mutex::default(),
            cells: AtomicU64::default(),
        })
    }

    /// An owner's sessions, oldest first.
    pub(crate) fn of(&self, owner: &Owner) -> Vec<Arc<SessionEntry>> {
        self.registry.of(owner.name())
    }

    /// Describes the sessions with which a model can continue. It is given no handle that its conversation
    /// has not used: that may be another one's.
    fn known(&self, conversation: Option<&McpConversation>) -> String {
        let own = conversation.map(|conversation| {
            let mut own = self.of(conversation.owner());
            own.retain(|entry| entry.users.include(conversation));
            own
        });
        let own = own.unwrap_or_default();
        if own.is_empty() {
            return "Leave `session_id` out to begin a new one".to_owned();
        }
        let handles: Vec<_> = own.iter().rev().take(LISTED).map(|it| it.id.as_str()).collect();
        format!(
            "Sessions of this conversation, latest first: {}",
            handles.join(", ")
        )
    }
}

fn refusal(error: HostingError) -> Refusal {
    Refusal::new(match error {
        HostingError::OwnerFull { held, limit } => format!(
            "there are {held} sessions, the limit is {limit}, and calls are at work in all of them: try \
             again in a while"
        ),
        HostingError::Full { limit } => {
            format!(
                "this server has {limit} sessions, which is its limit, and all are in use: try again \
                 in a while"
            )
        }
        HostingError::Closed | HostingError::Busy { .. } | HostingError::Ended | HostingError::Exists => {
            "no session is made any more".to_owned()
        }
    })
}
