//! Making containers.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use cellblock_agent::wire::{ApiError, ErrorKind, Ids};
use cellblock_interpreter::Session;
use cellblock_interpreter::limits::NetworkPolicy;
use cellblock_interpreter::project::Project;
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::skill::SessionSkill;
use cellblock_settings::Size;
use parking_lot::Mutex;

use super::run;
use crate::now_ms;
use crate::records::ContainerRow;
use crate::state::Gateway;
use crate::state::containers::room::{self, RoomPermit};
use crate::state::containers::{ContainerState, HeldContainer, LiveContainer, memory};
use crate::state::network::AllowedNetwork;

/// The memory that clients can ask for, in GiB.
const MEMORY: [(&str, u64); 4] = [("1g", 1), ("4g", 4), ("16g", 16), ("64g", 64)];
/// The names that code which derives finds.
const DERIVATION: &str = "derivation";
/// Time for which a session keeps an idle sandbox longer than its container: the container decides.
const LONGER: Duration = Duration::from_hours(1);

/// Properties of a new container.
#[derive(Clone, Debug)]
pub(crate) struct ContainerPlan {
    pub(crate) name: String,
    /// Whether a response makes it for itself.
    pub(crate) auto: bool,
    pub(crate) idle: Option<Duration>,
    pub(crate) memory_limit: Option<String>,
    /// Hosts that its code reaches, if it has a network.
    pub(crate) network: Option<AllowedNetwork>,
    /// Skills that its session has.
    pub(crate) skills: Vec<SessionSkill>,
    /// The response's first container, where this is another one of it.
    pub(crate) beside: Option<String>,
    /// Whether nothing that is stored leads back to it, so that it ends soon after its response.
    pub(crate) brief: bool,
    /// Whether all calls of its response run in it.
    pub(crate) shared: bool,
    /// One that has ended, whose id and files it has.
    pub(crate) revives: Option<ContainerRow>,
    /// Note about losses, which a model has to know before it continues in it.
    pub(crate) lost: Option<String>,
}

impl ContainerPlan {
    /// One that a client makes by name.
    pub(super) fn named(name: String) -> Self {
        Self {
            name,
            auto: false,
            idle: None,
            memory_limit: None,
            network: None,
            skills: Vec::new(),
            beside: None,
            brief: false,
            shared: false,
            revives: None,
            lost: None,
        }
    }

    /// One that a response makes for itself.
    pub(super) fn of_a_response() -> Self {
        Self {
            auto: true,
            ..Self::named("auto".to_owned())
        }
    }

    /// Makes it. Its sandbox is made when its code runs; one that a response makes for itself waits
    /// for room until then, others have it now or are refused.
    pub(crate) async fn make(self, gateway: &Gateway, owner: &str) -> Result<HeldContainer, ApiError> {
        let options = &gateway.options.containers;
        let idle = self.idle.unwrap_or(options.idle_timeout);
        let usual = gateway.interpreter()?.limits();
        let mut limits = usual.clone();
        if let Some(limit) = &self.memory_limit {
            limits.memory_bytes = memory(limit, gateway)?;
        }
        if self.network.is_some() {
            limits.network = NetworkPolicy::Egress;
        }
        let limits = (limits != *usual).then_some(limits);
        let room = if self.auto && self.beside.is_none() {
            None
        } else {
            Some(room::try_enter(gateway, owner).await?)
        };
        let id = match &self.revives {
            Some(row) => row.id.clone(),
            None => mint(),
        };
        let project = options.project.as_deref().map(|name| {
            let store = gateway.store.clone();
            Project::new(store, owner, name).map_err(|error| ApiError {
                kind: ErrorKind::ServerError,
                code: Some("server_error".to_owned()),
                message: error.to_string(),
                param: None,
            })
        });
        let mut options_of_session = SessionOptions {
            limits,
            idle: idle + LONGER,
            id: Some(id.clone()),
            guard: gateway.options.cells.guard,
            setup: gateway.options.cells.snippets.clone(),
            connectors: gateway.connectors(owner).await?,
            project: project.transpose()?,
            egress: self.network.as_ref().map(|network| network.egress.clone()),
            skills: self.skills.clone(),
            ..gateway.granted(owner, None)
        };
        if gateway.options.tools.any() {
            options_of_session.prelude.push(DERIVATION.to_owned());
        }
        let session = gateway.interpreter()?.session(options_of_session);
        self.host(gateway, owner, (id, session), room).await
    }

    /// Puts the container of a session at hand, with its place for a sandbox, and remembers it.
    pub(super) async fn host(
        self,
        gateway: &Gateway,
        owner: &str,
        (id, session): (String, Session),
        room: Option<RoomPermit>,
    ) -> Result<HeldContainer, ApiError> {
        let options = &gateway.options.containers;
        let idle = self.idle.unwrap_or(options.idle_timeout);
        let revived = self.revives.is_some();
        let live = LiveContainer {
            auto: self.auto,
            memory_limit: self.memory_limit.clone(),
            network: self.network.clone(),
            beside: self.beside,
            idle,
            brief: self.brief.then_some(options.one_shot_idle_timeout),
            session,
            furnished: AtomicBool::new(room.is_some()),
            lost: Mutex::new(self.lost),
            followed: AtomicBool::new(revived),
            revived,
            state: tokio::sync::Mutex::new(ContainerState {
                room,
                ..ContainerState::default()
            }),
        };
        let held = gateway.containers.registry.host(owner, &id, live);
        let held = held.map_err(|_| ApiError {
            kind: ErrorKind::ServerError,
            code: Some("server_error".to_owned()),
            message: "the gateway is stopping".to_owned(),
            param: None,
        })?;
        if revived {
            run::touch(gateway, &held).await;
            return Ok(held);
        }
        let now = now_ms();
        let row = ContainerRow {
            id: held.id.clone(),
            owner: owner.to_owned(),
            name: self.name,
            created_ms: now,
            active_ms: now,
            idle_ms: i64::try_from(idle.as_millis()).unwrap_or(i64::MAX),
            memory_limit: self.memory_limit,
            allowed_domains: self.network.map(|network| network.domains),
            automatic: self.auto,
            holder: Some(gateway.id.clone()),
        };
        if let Err(error) = gateway.records.add_container(row).await {
            gateway.containers.registry.end(&held).await;
            return Err(error.into());
        }
        Ok(held)
    }
}

/// Returns the ID of a new container.
pub(super) fn mint() -> String {
    Ids::random().mint("cntr")
}

/// The bytes of a memory limit, if this gateway gives that much.
pub(crate) fn memory(limit: &str, gateway: &Gateway) -> Result<u64, ApiError> {
    let invalid = |message: String| ApiError::invalid("memory_limit", "invalid_value", message);
    let Some((_, gigabytes)) = MEMORY.iter().find(|(name, _)| *name == limit) else {
        return Err(invalid(format!(
            "`memory_limit` is `{limit}`; it can be `1g`, `4g`, `16g` or `64g`"
        )));
    };
    let bytes = gigabytes << 30;
    let most = gateway
        .options
        .containers
        .max_memory
        .map(|Size(bytes)| bytes)
        .or_else(memory::total);
    match most {
        Some(most) if bytes > most => Err(invalid(format!(
            "`memory_limit` is `{limit}`, and containers here can have at most {most} bytes; ask for \
             less, or leave it out"
        ))),
        _ => Ok(bytes),
    }
}
