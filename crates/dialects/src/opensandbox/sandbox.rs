//! A sandbox of the protocol: a session, with its description, its token and its end.

use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;
use std::sync::Arc;

use cellblock_interpreter::hosting::{Resident, ResidentGuard};
use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio::time::sleep;

use super::OpenSandboxOptions;
use super::contexts::Contexts;
use super::create::SandboxMetadata;
use super::runs::Runs;
use super::shell::Shells;
use super::terminals::Terminals;
use crate::host::DialectHost;
use crate::instant::instant;
use crate::session::{DialectSession, DialectSessions};

/// A sandbox that nobody else can end meanwhile.
pub(super) type HeldSandbox = ResidentGuard<DialectSession<Sandbox>>;
/// A sandbox of the registry.
pub(super) type ResidentSandbox = Arc<Resident<DialectSession<Sandbox>>>;

/// State that the routes share.
#[derive(Clone, Debug)]
pub(super) struct State(Arc<OpenSandboxState>);

#[derive(Debug)]
pub(super) struct OpenSandboxState {
    pub(super) host: DialectHost,
    pub(super) options: OpenSandboxOptions,
    pub(super) sandboxes: DialectSessions<Sandbox>,
    /// The owner of each sandbox, for clients that have only its token.
    owners: Mutex<HashMap<String, String>>,
}

/// Data that is kept with the session of a sandbox.
#[derive(Debug)]
pub(super) struct Sandbox {
    /// Opens this sandbox, and nothing else.
    pub(super) token: String,
    /// Fields that the client gave and reads again.
    pub(super) given: Map<String, Value>,
    pub(super) metadata: Mutex<SandboxMetadata>,
    /// Environment of its programs.
    pub(super) env: BTreeMap<String, String>,
    pub(super) created: DateTime<Utc>,
    pub(super) expires: watch::Sender<DateTime<Utc>>,
    /// The time that it has left, if it is paused.
    pub(super) paused: Mutex<Option<TimeDelta>>,
    pub(super) contexts: Contexts,
    pub(super) runs: Runs,
    pub(super) shells: Shells,
    pub(super) terminals: Terminals,
}

impl State {
    pub(super) fn new(
        host: &DialectHost,
        options: &OpenSandboxOptions,
        sandboxes: DialectSessions<Sandbox>,
    ) -> Self {
        Self(Arc::new(OpenSandboxState {
            host: host.clone(),
            options: options.clone(),
            sandboxes,
            owners: Mutex::default(),
        }))
    }

    /// Remembers a sandbox's owner, and forgets those of sandboxes that have ended.
    pub(super) fn remember(&self, sandbox: &ResidentSandbox) {
        let mut owners = lock(&self.owners);
        owners.retain(|id, owner| self.sandboxes.get(owner, id).is_some());
        owners.insert(sandbox.id.clone(), sandbox.owner.clone());
    }

    /// Returns the sandbox that a token opens.
    pub(super) fn opened_by(&self, id: &str, token: &str) -> Option<HeldSandbox> {
        let owner = lock(&self.owners).get(id).cloned()?;
        let sandbox = self.sandboxes.get(&owner, id)?;
        if !is_same(&sandbox.kept.token, token) {
            return None;
        }
        sandbox.hold()
    }

    /// Ends a sandbox when its time is over.
    pub(super) fn expire(&self, sandbox: ResidentSandbox) {
        let state = self.clone();
        let mut expires = sandbox.kept.expires.subscribe();
        self.host.tasks.spawn(async move {
            loop {
                let at = *expires.borrow_and_update();
                let left = (at - Utc::now()).to_std().unwrap_or_default();
                tokio::select! {
                    () = sleep(left) => return state.sandboxes.end(&sandbox).await,
                    _ = expires.changed() => {}
                    () = sandbox.closed() => return,
                    () = state.host.stopping.cancelled() => return,
                }
            }
        });
    }
}

impl Deref for State {
    type Target = OpenSandboxState;

    fn deref(&self) -> &OpenSandboxState {
        &self.0
    }
}

impl Sandbox {
    pub(super) fn status(&self) -> &'static str {
        if lock(&self.paused).is_some() {
            "Paused"
        } else {
            "Running"
        }
    }

    /// Pauses it; it ends after this time unless it is resumed. Returns whether it was running.
    pub(super) fn pause(&self, most: TimeDelta) -> bool {
        let mut paused = lock(&self.paused);
        if paused.is_some() {
            return false;
        }
        let now = Utc::now();
        *paused = Some(self.expires.send_replace(now + most) - now);
        true
    }

    /// Resumes it, with the time that it had left. Returns whether it was paused.
    pub(super) fn resume(&self) -> bool {
        let left = lock(&self.paused).take();
        if let Some(left) = left {
            self.expires.send_replace(Utc::now() + left);
        }
        left.is_some()
    }

    /// Returns what a client reads of it.
    pub(super) fn describe(&self, id: &str) -> Value {
        let mut fields = Map::new();
        fields.insert("id".to_owned(), json!(id));
        fields.insert("status".to_owned(), json!({"state": self.status()}));
        fields.extend(self.given.clone());
        fields.insert("metadata".to_owned(), json!(*lock(&self.metadata)));
        fields.insert("createdAt".to_owned(), json!(instant(self.created)));
        fields.insert("expiresAt".to_owned(), json!(instant(*self.expires.borrow())));
        Value::Object(fields)
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

/// Compares secrets in a time that does not depend on where they differ.
fn is_same(one: &str, other: &str) -> bool {
    let pairs = one.bytes().zip(other.bytes());
    one.len() == other.len() && pairs.fold(0, |all, (one, other)| all | (one ^ other)) == 0
}
