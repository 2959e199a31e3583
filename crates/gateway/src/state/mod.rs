//! State that the handlers of all routes share. The server is built from it, above the routes.

mod caller;
pub(crate) mod connections;
pub(crate) mod console;
pub(crate) mod containers;
mod forwarder;
pub(crate) mod network;
pub(crate) mod responses;
pub(crate) mod sessions;
pub(crate) mod skills;
mod slots;

use std::sync::Arc;

use cellblock_agent::wire::ApiError;
use cellblock_artifact::Store;
use cellblock_interpreter::Interpreter;
use cellblock_interpreter::connector::{Connector, FetchAllowance};
use cellblock_interpreter::egress::inbound::ForwardScope;
use cellblock_interpreter::hosting::uploads::{UploadLimits, UploadRoom};
use cellblock_interpreter::limits::NetworkPolicy;
use cellblock_interpreter::run_record::RunSink;
use cellblock_interpreter::session::SessionOptions;
use ring::hmac::Key;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use caller::Administrator;
pub use caller::Caller;
use connections::LiveConnections;
use console::ConsoleTickets;
pub use containers::Containers;
use forwarder::Forwarder;
use sessions::Sessions;
use skills::SkillShelf;
use slots::Slots;

use crate::disk::DiskRoom;
use crate::engine::Engine;
use crate::keys::{KeyLookup, Keys};
use crate::models::Models;
use crate::options::Options;
use crate::quotas::{Allowance, OwnerFetches, Quota, Quotas};
use crate::records::holders::HoldingGateway;
use crate::records::{Records, RecordsError};
use crate::run_log::RunLog;

/// A gateway: what its routes share.
#[derive(Clone, Debug)]
pub struct Gateway(Arc<GatewayState>);

/// State that routes share.
#[derive(Debug)]
pub struct GatewayState {
    /// Its name among the gateways that share its records.
    pub(crate) id: String,
    /// Options of the gateway.
    pub options: Options,
    /// Records that it keeps across restarts.
    pub records: Records,
    /// Keys of callers.
    pub keys: Keys,
    /// Quotas of owners.
    pub quotas: Quotas,
    /// Room in which uploads are received.
    pub uploads: UploadRoom,
    /// The models that it offers.
    pub models: Models,
    /// Engine that runs code.
    pub engine: Engine,
    /// Store of files.
    pub store: Store,
    /// Skills that are shared, and those that are open.
    pub(crate) skills: SkillShelf,
    /// Containers that are at hand.
    pub containers: Containers,
    /// Records of runs on their way.
    pub(crate) runs: RunLog,
    /// The sessions of its REST.
    pub(crate) sessions: Sessions,
    /// The key of links to ports, read when the first is made or opened.
    pub(crate) preview_key: OnceCell<Key>,
    /// Sign-ins to the console.
    pub(crate) console: ConsoleTickets,
    /// Executions that may run at a time.
    pub(crate) slots: Slots,
    /// Canceled when it is asked to stop. A gateway that others reach then serves what it has, and
    /// has others do new work.
    pub(crate) draining: CancellationToken,
    /// Canceled when it begins to stop: new work is rejected.
    pub stopping: CancellationToken,
    /// Canceled some time after that, when running work has to end: turns fail, streams and
    /// sandboxes are closed.
    pub ending: CancellationToken,
    /// State that responses share.
    pub(crate) responses: responses::LiveResponses,
    /// Tasks that continue without a client and are waited for at the end.
    pub tasks: TaskTracker,
    /// Canceled by a second signal: stop without waiting.
    pub(crate) hurrying: CancellationToken,
    /// Client for requests to other gateways.
    pub(crate) forwarder: Forwarder,
    /// Connections of all its listeners.
    pub(crate) connections: LiveConnections,
    /// Room on the disks that it writes to.
    pub(crate) disks: DiskRoom,
}

impl std::ops::Deref for Gateway {
    type Target = GatewayState;

    fn deref(&self) -> &GatewayState {
        &self.0
    }
}

impl Gateway {
    /// A gateway that nobody can reach yet.
    pub fn new(options: Options, records: Records, models: Models, engine: impl Into<Engine>) -> Self {
        crate::metrics::start();
        let responses = responses::LiveResponses::new(&options.responses);
        let containers = Containers::new(&options.containers);
        let engine = engine.into();
        let folders = [
            engine.store().folder(),
            records.folder(),
            options.uploads.folder.as_deref(),
        ];
        let disks = DiskRoom::new(folders.into_iter().flatten());
        let layers = options.requirements.per_key_per_day;
        let allowance = Allowance::from(&options.quotas).with(Quota::LayersPerDay, layers);
        let id = format!("{:032x}", u128::from_be_bytes(crate::random()));
        Self(Arc::new(GatewayState {
            keys: Keys::new(records.clone()),
            quotas: Quotas::new(allowance, records.clone(), &id),
            uploads: UploadRoom::new(
                UploadLimits::from(&options.uploads),
                options.uploads.folder.clone(),
            ),
            id,
            runs: RunLog::new(records.clone(), options.runs),
            sessions: Sessions::new(&options.sessions),
            preview_key: OnceCell::new(),
            console: ConsoleTickets::default(),
            slots: Slots::new(options.execute.max_concurrent),
            skills: SkillShelf::new(&options.skills),
            options,
            records,
            models,
            store: engine.store().clone(),
            engine,
            containers,
            responses,
            draining: CancellationToken::new(),
            stopping: CancellationToken::new(),
            ending: CancellationToken::new(),
            tasks: TaskTracker::new(),
            hurrying: CancellationToken::new(),
            forwarder: Forwarder::default(),
            connections: LiveConnections::default(),
            disks,
        }))
    }

    /// Whether it serves what it has until that is handed over or has ended, and does no new work.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.is_cancelled() && !self.stopping.is_cancelled()
    }

    /// Returns this gateway as others find it in the records that they share.
    pub(crate) fn holder(&self) -> HoldingGateway {
        HoldingGateway {
            id: self.id.clone(),
            address: self.options.advertise.as_ref().map(ToString::to_string),
        }
    }

    /// Whether an owner may use what it has: its key is neither revoked nor expired, or no keys are required.
    pub async fn is_usable(&self, owner: &str) -> Result<bool, RecordsError> {
        if Caller::is_local(owner) {
            return Ok(!self.requires_keys() && self.keys.find(None).await? == KeyLookup::Open);
        }
        self.keys.is_usable(owner).await
    }

    /// Whether a caller without a key is rejected even if there are no keys.
    pub(crate) fn requires_keys(&self) -> bool {
        self.options.auth.required || !self.options.listen.ip().is_loopback()
    }

    /// Returns the lifetime of connections with programs in sandboxes and with other gateways.
    pub(crate) fn forward_scope(&self) -> ForwardScope {
        ForwardScope {
            tasks: self.tasks.clone(),
            ending: self.ending.clone(),
        }
    }

    /// Returns the connectors that code of this owner may call: those that its key is granted, or
    /// all if no keys are required.
    pub async fn connectors(&self, owner: &str) -> Result<Vec<Arc<dyn Connector>>, RecordsError> {
        let offered = &self.options.connectors;
        if offered.is_empty() || Caller::is_local(owner) {
            return Ok(offered.clone());
        }
        let grant = self.keys.connectors(owner).await?;
        Ok(offered
            .iter()
            .filter(|it| grant.allows(it.name()))
            .cloned()
            .collect())
    }

    /// Returns the widest network policy of this owner's code: the narrowest of the server's, that of its
    /// key, and that of the image.
    pub(crate) async fn max_network(&self, owner: &str) -> Result<NetworkPolicy, RecordsError> {
        let of_key = self.keys.max_network(owner).await?;
        let of_image = match &self.engine {
            Engine::Interpreter(interpreter) => interpreter.max_network(),
            Engine::Execute(_) => None,
        };
        let narrower = of_key.into_iter().chain(of_image);
        Ok(narrower.fold(self.options.max_network, Ord::min))
    }

    /// Returns the options of a session of this owner, as far as they follow from who it is. The
    /// session, if it is given, is named with refused fetches.
    pub fn granted(&self, owner: &str, session: Option<&str>) -> SessionOptions {
        SessionOptions {
            id: session.map(str::to_owned),
            fetch_allowance: Some(self.fetch_allowance(owner, session)),
            runs: self.run_sink(owner),
            egress_log: Some(self.quotas.decisions().egress_of(owner)),
            ..SessionOptions::default()
        }
    }

    /// Returns how much code of this owner may fetch with connectors.
    pub(crate) fn fetch_allowance(&self, owner: &str, session: Option<&str>) -> Arc<dyn FetchAllowance> {
        let quotas = match session {
            Some(id) => self.quotas.of_session(id),
            None => self.quotas.clone(),
        };
        Arc::new(OwnerFetches::new(quotas, owner.to_owned()))
    }

    /// Returns what takes records of this owner's runs, if they are kept.
    pub(crate) fn run_sink(&self, owner: &str) -> Option<Arc<dyn RunSink>> {
        self.runs.sink(owner)
    }

    /// The sandboxes; an error where code runs at a server that keeps nothing.
    pub fn interpreter(&self) -> Result<&Arc<Interpreter>, ApiError> {
        self.engine.interpreter()
    }
}

/// Describes the connectors that a key has, for errors.
pub(crate) fn described(granted: &[Arc<dyn Connector>]) -> String {
    let names: Vec<_> = granted.iter().map(|it| it.name()).collect();
    if names.is_empty() {
        "this key has none; the operator grants them with `cellblock key create NAME --connectors NAMES`"
            .to_owned()
    } else {
        format!("this key has {}", names.join(", "))
    }
}
