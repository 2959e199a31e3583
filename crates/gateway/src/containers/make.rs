//! Making containers.

use std::path::Path;
use std::time::Duration;

use cellblock_interpreter::{Limits, SessionOptions};

use super::live::{Held, Live, State};
use crate::clock::now_ms;
use crate::quotas::SandboxPermit;
use crate::records::ContainerRow;
use crate::server::Gateway;
use crate::wire::{ApiError, ErrorKind, Ids};

/// The memory that clients can ask for, in GiB.
const MEMORY: [(&str, u64); 4] = [("1g", 1), ("4g", 4), ("16g", 16), ("64g", 64)];
/// The names that code which derives finds.
const DERIVATION: &str = "derivation";
/// How much longer than its container a session keeps an idle sandbox: the container decides.
const LONGER: Duration = Duration::from_hours(1);

/// What a container is to be like.
#[derive(Clone, Debug)]
pub(crate) struct New {
    pub(crate) name: String,
    /// Whether a response makes it for itself.
    pub(crate) auto: bool,
    pub(crate) idle: Option<Duration>,
    pub(crate) memory_limit: Option<String>,
    /// The response's first container, where this is another one of it.
    pub(crate) beside: Option<String>,
}

impl New {
    /// One that a response makes for itself.
    pub(super) fn of_a_response() -> Self {
        Self {
            name: "auto".to_owned(),
            auto: true,
            idle: None,
            memory_limit: None,
            beside: None,
        }
    }

    /// Makes it, with a sandbox when that is needed first. One that a response makes for itself waits for a place; others do not.
    pub(crate) async fn make(self, gateway: &Gateway, owner: &str) -> Result<Held, ApiError> {
        let options = &gateway.options.containers;
        let idle = self.idle.unwrap_or(options.idle);
        let limits = match &self.memory_limit {
            None => None,
            Some(limit) => Some(Limits {
                memory_bytes: memory(limit, gateway)?,
                ..gateway.interpreter()?.limits().clone()
            }),
        };
        let deadline = tokio::time::Instant::now() + options.wait;
        let permit = self.permit(gateway, owner, deadline).await?;
        let mut options_of_session = SessionOptions {
            limits,
            idle: idle + LONGER,
            ..SessionOptions::default()
        };
        if gateway.options.tools.any() {
            options_of_session.prelude.push(DERIVATION.to_owned());
        }
        let session = gateway.interpreter()?.session(options_of_session);
        let mut live = Live {
            id: Ids::random().mint("cntr"),
            owner: owner.to_owned(),
            auto: self.auto,
            memory_limit: self.memory_limit.clone(),
            beside: self.beside,
            idle,
            session,
            _permit: permit,
            state: tokio::sync::Mutex::new(State::default()),
        };
        let (held, evicted) = loop {
            // Listened to before the try, so that nothing is missed between the two.
            let freed = gateway.containers.freed();
            match gateway.containers.add(live, options.per_owner) {
                Ok(added) => break added,
                Err(_) if !self.auto => return Err(too_many(options.per_owner)),
                Err(back) => live = *back,
            }
            if tokio::time::timeout_at(deadline, freed).await.is_err() {
                return Err(too_many(options.per_owner));
            }
        };
        if let Some(evicted) = evicted {
            tracing::info!(container = evicted.id, "an idle container gave way to a new one");
            gateway.tasks.spawn(async move { evicted.end().await });
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
        };
        if let Err(error) = gateway.records.add_container(row).await {
            gateway.containers.take(owner, &held.id);
            return Err(error.into());
        }
        Ok(held)
    }

    /// Counts it among those that its owner may have. An idle one gives way to one that a response makes for itself, which else waits for a place.
    async fn permit(
        &self,
        gateway: &Gateway,
        owner: &str,
        deadline: tokio::time::Instant,
    ) -> Result<SandboxPermit, ApiError> {
        loop {
            let freed = gateway.containers.freed();
            let refused = match gateway.quotas.sandbox(owner).await {
                Ok(permit) => return Ok(permit),
                Err(refused) if self.auto => refused,
                Err(refused) => return Err(refused),
            };
            if let Some(idle) = gateway.containers.give_way(owner) {
                tracing::info!(container = idle.id, "an idle container gave way to a new one");
                idle.end().await;
            } else if tokio::time::timeout_at(deadline, freed).await.is_err() {
                return Err(refused);
            }
        }
    }
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
    let most = gateway.options.containers.max_memory.or_else(machine_memory);
    match most {
        Some(most) if bytes > most => Err(invalid(format!(
            "`memory_limit` is `{limit}`, and containers here can have at most {most} bytes; ask for less, or leave it out"
        ))),
        _ => Ok(bytes),
    }
}

/// The memory of this machine, where it says so.
fn machine_memory() -> Option<u64> {
    let told = std::fs::read_to_string(Path::new("/proc/meminfo")).ok()?;
    let line = told.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

fn too_many(most: usize) -> ApiError {
    ApiError {
        kind: ErrorKind::TooManyRequests,
        code: Some("too_many_containers".to_owned()),
        message: format!(
            "there are {most} containers already, the most that you can have; delete one, or wait until one expires"
        ),
        param: None,
    }
}
