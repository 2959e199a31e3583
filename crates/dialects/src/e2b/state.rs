//! All sandboxes of the dialect, by their ids.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cellblock_interpreter::hosting::{HostingLimits, Owner, Resident};
use parking_lot::{Mutex, MutexGuard};

use super::control::Retries;
use super::domain::HostDomain;
use super::error::{Answer, Problem};
use super::options::E2bOptions;
use super::sandbox::{HeldSandbox, Sandbox, drop_memory};
use super::snapshot::{MAX_SNAPSHOTS, Snapshot};
use super::templates::TemplateBuilds;
use crate::DialectListenError;
use crate::host::DialectHost;
use crate::session::{DialectSession, DialectSessions};

/// Maximum time for which a sandbox may be paused.
const PAUSED: Duration = Duration::from_hours(24);
/// Calls that wait for a sandbox.
const WAITING: usize = 256;
/// Longer than any sandbox lives: its end is not that of a session nobody uses.
pub(super) const FOREVER: Duration = Duration::from_hours(24 * 365);
/// Maximum timeout, unless another is configured.
const MAX_TIMEOUT: Duration = Duration::from_hours(24);

/// The dialect. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct E2b(Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) host: DialectHost,
    pub(super) options: E2bOptions,
    pub(super) domain: Option<HostDomain>,
    pub(super) sandboxes: DialectSessions<Sandbox>,
    pub(super) snapshots: DialectSessions<Snapshot>,
    /// Whose they are. Requests to a sandbox carry no key, but its id and tokens.
    owners: Mutex<HashMap<String, Owner>>,
    /// The sandboxes of clients in debug mode, one for each owner.
    pub(super) shared: tokio::sync::Mutex<HashMap<String, String>>,
    pub(super) retries: Retries,
    pub(super) builds: TemplateBuilds,
}

impl std::ops::Deref for E2b {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl E2b {
    pub(super) fn new(host: DialectHost, options: E2bOptions) -> Result<Self, DialectListenError> {
        let domain = HostDomain::of(&options)?;
        let limits = HostingLimits {
            waiting: WAITING,
            ..HostingLimits::default()
        };
        let sandboxes = host.sessions(limits);
        let snapshots = host.sessions(HostingLimits {
            per_owner: MAX_SNAPSHOTS,
            ..limits
        });
        let builds = TemplateBuilds::new(&host, options.builds.as_ref());
        Ok(Self(Arc::new(Inner {
            host,
            options,
            domain,
            sandboxes,
            snapshots,
            owners: Mutex::default(),
            shared: tokio::sync::Mutex::default(),
            retries: Retries::default(),
            builds,
        })))
    }

    pub(super) fn max_timeout(&self) -> Duration {
        self.options.max_timeout.map_or(MAX_TIMEOUT, Duration::from_secs)
    }

    /// Holds an owner's sandbox.
    pub(super) fn of(&self, owner: &Owner, id: &str) -> Answer<HeldSandbox> {
        let found = self.sandboxes.hold(owner.name(), id);
        found.ok_or_else(|| Problem::not_found(format!("sandbox {id:?} was not found")))
    }

    /// Holds a sandbox that a request names by its id alone.
    pub(super) fn by_id(&self, id: &str) -> Option<HeldSandbox> {
        let owner = self.owners().get(id).cloned()?;
        self.sandboxes.hold(owner.name(), id)
    }

    /// Takes a new sandbox in, and ends it when its time is over.
    pub(super) fn watch(&self, held: &HeldSandbox) {
        let (id, owner) = (held.id.clone(), held.kept.owner.clone());
        self.owners().insert(id, owner);
        let e2b = self.clone();
        let resident = Arc::clone(held);
        self.host.tasks.spawn(async move {
            e2b.until_its_end(&resident).await;
            e2b.owners().remove(&resident.id);
        });
    }

    async fn until_its_end(&self, resident: &Arc<Resident<DialectSession<Sandbox>>>) {
        let mut life = resident.kept.life.subscribe();
        loop {
            let now = *life.borrow_and_update();
            let left = if now.is_paused() { PAUSED } else { now.left() };
            tokio::select! {
                () = resident.closed() => return,
                // A registry that is closed closes its sessions.
                () = self.host.ending.cancelled() => return,
                _ = life.changed() => continue,
                () = tokio::time::sleep(left) => {}
            }
            if !now.is_paused() && now.end > SystemTime::now() {
                // The clock was set back.
                continue;
            }
            if now.pauses && !now.is_paused() {
                if resident.kept.pause(!now.drops_memory)
                    && now.drops_memory
                    && let Err(error) = drop_memory(resident).await
                {
                    let reason = error.0.message;
                    tracing::warn!(
                        reason,
                        sandbox = resident.id,
                        "pause a sandbox without its memory"
                    );
                }
                continue;
            }
            tracing::info!(sandbox = resident.id, "a sandbox has reached its timeout");
            self.sandboxes.end(resident).await;
            return;
        }
    }

    fn owners(&self) -> MutexGuard<'_, HashMap<String, Owner>> {
        self.owners.lock()
    }
}
