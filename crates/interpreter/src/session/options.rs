//! Options of a session.

use std::sync::Arc;
use std::time::Duration;

use cellblock_artifact::ArtifactId;
#[cfg(feature = "egress")]
use cellblock_egress::{EgressPolicy, EgressRecord};
use cellblock_protocol::{Guard, Rescue};
use cellblock_sandbox::Limits;
use serde::{Deserialize, Serialize};

use crate::connector::{Connector, FetchAllowance};
use crate::project::Project;
use crate::run_record::RunSink;
#[cfg(doc)]
use crate::session::Session;
use crate::skill::SessionSkill;
use crate::volume::SessionVolume;

/// Options of a session.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Sets of names that are bound before the first cell; see `docs/protocol.md`.
    pub prelude: Vec<String>,
    /// Guard that checks code before it runs. It is a help for models, not a security boundary.
    pub guard: Guard,
    /// Code that runs before the first cell, and again after a reset and in each new kernel.
    pub setup: Vec<SetupSnippet>,
    /// Limits; by default the interpreter's, whose sandboxes are kept ready.
    pub limits: Option<Limits>,
    /// Whether a sandbox may come from the pool.
    pub pooled: bool,
    /// Whether, and how surely, variables survive a cell that kills its kernel; see `docs/rescue.md`.
    pub rescue: Rescue,
    /// Maximum idle time of a sandbox; the session itself continues, in a new one.
    pub idle: Duration,
    /// Action after that.
    pub on_idle: OnIdle,
    /// Time for which a session is kept that was hibernated because nobody had used it.
    pub hibernation: Duration,
    /// Id of the session in the origins of its artifacts; by default, a random one.
    pub id: Option<String>,
    /// Connectors that its code may call. Cells that derive from tool results may call none.
    pub connectors: Vec<Arc<dyn Connector>>,
    /// Packages that it has from its beginning, in addition to those of the image. They are
    /// installed before its first cell or command.
    pub requirements: Vec<String>,
    /// Allowances of its code for fetches of its connectors and for layers of packages; any amount
    /// by default.
    pub fetch_allowance: Option<Arc<dyn FetchAllowance>>,
    /// Project whose datasets its code may publish and load.
    pub project: Option<Project>,
    /// Datasets of the project that it may load without having looked at them, by slug.
    pub seen: Vec<String>,
    /// Policy of the hosts that code reaches with `network: egress`, which needs it.
    #[cfg(feature = "egress")]
    pub egress: Option<EgressPolicy>,
    /// Takes a record of each request to a host; none are kept by default.
    #[cfg(feature = "egress")]
    pub egress_log: Option<Arc<dyn EgressLog>>,
    /// Skills that code finds in `/skills`, each in a folder with its name.
    pub skills: Vec<SessionSkill>,
    /// Volume whose files it has in `/workspace/volume`.
    pub volume: Option<SessionVolume>,
    /// Archive (tar, compressed with gzip) whose files each of its sandboxes has in `/workspace` from
    /// its beginning. It is unpacked inside the sandbox.
    pub archive: Option<ArtifactId>,
    /// Takes a record of each cell; none are made by default.
    pub runs: Option<Arc<dyn RunSink>>,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            prelude: vec!["analysis".into(), "documents".into()],
            guard: Guard::Off,
            setup: Vec::new(),
            limits: None,
            pooled: true,
            rescue: Rescue::Idle,
            idle: Duration::from_mins(15),
            on_idle: OnIdle::End,
            hibernation: Duration::from_hours(24),
            id: None,
            connectors: Vec::new(),
            requirements: Vec::new(),
            fetch_allowance: None,
            project: None,
            seen: Vec::new(),
            #[cfg(feature = "egress")]
            egress: None,
            #[cfg(feature = "egress")]
            egress_log: None,
            skills: Vec::new(),
            volume: None,
            archive: None,
            runs: None,
        }
    }
}

/// Code that prepares a session. Names that it binds are not variables of the session. It can call
/// no connectors, and what it prints and shows is dropped. If it fails, the next cell's
/// [note](crate::Execution::note) says so, and the session continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetupSnippet {
    /// File name in tracebacks and notes.
    pub name: String,
    /// The code.
    pub code: String,
    /// Whether the session's [guard](SessionOptions::guard) checks it. Code of an operator
    /// needs no check.
    pub guarded: bool,
}

/// Action for a session that nobody has used for its idle timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnIdle {
    /// Its sandbox ends, with all variables and files.
    #[default]
    End,
    /// It is [hibernated](Session::hibernate), and ends when nobody uses it for the hibernation
    /// timeout after that.
    Hibernate,
}

impl OnIdle {
    /// Returns its name in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::End => "end",
            Self::Hibernate => "hibernate",
        }
    }
}

impl std::str::FromStr for OnIdle {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        let known = [Self::End, Self::Hibernate];
        let found = known.into_iter().find(|action| action.name() == text);
        found.ok_or_else(|| {
            format!("`{text}` is not what can happen to an idle session; choose `end` or `hibernate`")
        })
    }
}

/// Takes records of requests to hosts, once each has ended. It must not wait.
#[cfg(feature = "egress")]
pub trait EgressLog: std::fmt::Debug + Send + Sync {
    /// Takes a record.
    fn record(&self, record: &EgressRecord);
}
