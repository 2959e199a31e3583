//! State of E2B about a sandbox, in addition to its session.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cellblock_interpreter::hosting::{Owner, ResidentGuard};
use tokio::sync::watch;

use super::code::Contexts;
use super::control::NetworkRules;
use super::envd::Daemon;
use super::secret::Token;
use crate::session::DialectSession;

/// A sandbox in use.
pub(super) type HeldSandbox = ResidentGuard<DialectSession<Sandbox>>;

/// State of E2B about a sandbox.
#[derive(Debug)]
pub(super) struct Sandbox {
    pub(super) owner: Owner,
    pub(super) template: String,
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) envs: BTreeMap<String, String>,
    pub(super) started: SystemTime,
    /// Token of the daemon and the interpreter, if the client asked for one.
    pub(super) access: Option<Token>,
    /// Token that opens its ports, unless they are public.
    pub(super) traffic: Option<Token>,
    /// Network rules with which it was created.
    pub(super) rules: NetworkRules,
    pub(super) life: watch::Sender<Life>,
    pub(super) contexts: Arc<Contexts>,
    pub(super) daemon: Daemon,
}

/// Lifetime of a sandbox.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    pub(super) end: SystemTime,
    pub(super) is_paused: bool,
    /// Whether it is paused at its end, rather than killed.
    pub(super) pauses: bool,
    /// Whether a request resumes it.
    pub(super) resumes: bool,
    /// Last lifetime that a client requested for it.
    pub(super) timeout: Duration,
}

impl Life {
    /// Returns the remaining time.
    pub(super) fn left(&self) -> Duration {
        self.end.duration_since(SystemTime::now()).unwrap_or_default()
    }

    pub(super) fn state(&self) -> &'static str {
        if self.is_paused { "paused" } else { "running" }
    }
}

impl Sandbox {
    /// Lets it live for this long from now, and resumes it if it is paused. Returns whether it was.
    pub(super) fn live(&self, timeout: Duration, at_least: bool) -> bool {
        let mut was_paused = false;
        self.life.send_modify(|life| {
            was_paused = std::mem::take(&mut life.is_paused);
            let end = SystemTime::now() + timeout;
            if !at_least || was_paused || end > life.end {
                life.end = end;
                life.timeout = timeout;
            }
        });
        was_paused
    }

    /// Pauses it. Returns whether it was running.
    pub(super) fn pause(&self) -> bool {
        self.life
            .send_if_modified(|life| !std::mem::replace(&mut life.is_paused, true))
    }
}
