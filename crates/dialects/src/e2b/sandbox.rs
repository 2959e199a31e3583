//! State of E2B about a sandbox, in addition to its session.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cellblock_interpreter::hosting::{Owner, Resident, ResidentGuard};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::code::Contexts;
use super::control::NetworkRules;
use super::envd::Daemon;
use super::error::Answer;
use super::secret::Token;
use super::volumes::VolumeMount;
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
    /// Its volumes, at most one.
    pub(super) mounts: Vec<VolumeMount>,
    /// Directory in which code and commands begin.
    pub(super) workdir: String,
    pub(super) started: SystemTime,
    /// Token of the daemon and the interpreter, if the client asked for one.
    pub(super) access: Option<Token>,
    /// Token that opens its ports, unless they are public.
    pub(super) traffic: Option<Token>,
    /// Network rules that hold now.
    pub(super) rules: Mutex<NetworkRules>,
    pub(super) life: watch::Sender<Life>,
    pub(super) contexts: Arc<Contexts>,
    pub(super) daemon: Daemon,
}

/// Lifetime of a sandbox.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    pub(super) end: SystemTime,
    pub(super) state: LifeState,
    /// Whether it is paused at its end, rather than killed.
    pub(super) pauses: bool,
    /// Whether that pause drops variables and processes.
    pub(super) drops_memory: bool,
    /// Whether a request resumes it.
    pub(super) resumes: bool,
    /// Last lifetime that a client requested for it.
    pub(super) timeout: Duration,
}

/// State of a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LifeState {
    Running,
    /// Paused with its variables and processes.
    Paused,
    /// Paused with its files alone.
    PausedFiles,
}

impl LifeState {
    /// Returns E2B's name for it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused | Self::PausedFiles => "paused",
        }
    }
}

impl Life {
    /// Returns the remaining time.
    pub(super) fn left(&self) -> Duration {
        self.end.duration_since(SystemTime::now()).unwrap_or_default()
    }

    pub(super) fn is_paused(&self) -> bool {
        self.state != LifeState::Running
    }
}

impl Sandbox {
    /// Lets it live for this long from now, and resumes it if it is paused. Returns whether it was.
    pub(super) fn live(&self, timeout: Duration, at_least: bool) -> bool {
        let mut was_paused = false;
        self.life.send_modify(|life| {
            was_paused = life.is_paused();
            life.state = LifeState::Running;
            let end = SystemTime::now() + timeout;
            if !at_least || was_paused || end > life.end {
                life.end = end;
                life.timeout = timeout;
            }
        });
        was_paused
    }

    /// Pauses it, with its memory or without. Returns whether it was running.
    pub(super) fn pause(&self, memory: bool) -> bool {
        self.life.send_if_modified(|life| {
            let runs = !life.is_paused();
            if runs {
                life.state = if memory {
                    LifeState::Paused
                } else {
                    LifeState::PausedFiles
                };
            }
            runs
        })
    }

    /// Returns the state of a copy that lives for this long.
    pub(super) fn fork(&self, timeout: Duration) -> Self {
        let started = SystemTime::now();
        let life = Life {
            end: started + timeout,
            state: LifeState::Running,
            timeout,
            ..*self.life.borrow()
        };
        Self {
            owner: self.owner.clone(),
            template: self.template.clone(),
            metadata: self.metadata.clone(),
            envs: self.envs.clone(),
            // A sandbox with a volume has no copies.
            mounts: Vec::new(),
            workdir: self.workdir.clone(),
            started,
            access: self.access.as_ref().map(|_| Token::new()),
            traffic: self.traffic.as_ref().map(|_| Token::new()),
            rules: Mutex::new(self.rules.lock().clone()),
            life: watch::Sender::new(life),
            contexts: Arc::new(self.contexts.copy()),
            daemon: Daemon::default(),
        }
    }
}

/// Ends everything that runs in a paused sandbox, and keeps its files alone.
pub(super) async fn drop_memory(resident: &Arc<Resident<DialectSession<Sandbox>>>) -> Answer<()> {
    let dropping = async {
        let turn = resident.turn().await?;
        let is_paused = turn.kept.life.borrow().is_paused();
        if !is_paused {
            // A client has resumed it in the meantime, and may have started something.
            return Ok(());
        }
        turn.session.hibernate_files().await?;
        turn.kept.contexts.forget_use();
        Ok(())
    };
    resident.until(ready(()), dropping).await
}
