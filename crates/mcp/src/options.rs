//! Options of a server.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cellblock_interpreter::builder::Lack;
use cellblock_interpreter::cell::Guard;
use cellblock_interpreter::connector::Connector;
use cellblock_interpreter::egress::EgressPolicy;
use cellblock_interpreter::limits::{Limits, MAX_CELL_TIMEOUT, NetworkPolicy};
use cellblock_interpreter::session::SetupSnippet;
use cellblock_interpreter::session::hibernate::OnIdle;
use cellblock_interpreter::skill::SessionSkill;
use cellblock_interpreter::toolset::{ToolsetKind, ToolsetTerms, notebook, python};
use cellblock_settings::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::display::ImageDisplay;
use cellblock_interpreter::hosting::Owner;
use cellblock_interpreter::hosting::{Meter, MeterDenial, UnlimitedMeter};

/// The Model Context Protocol over HTTP, `/mcp`: tools, resources and prompts for agents that
/// connect to a URL.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Mcp")]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Serve `/mcp`.
    pub serve: bool,
    /// Toolsets to offer, in addition to the tools for sessions and files; `cellblock mcp --help`
    /// lists them.
    pub toolsets: Vec<ToolsetKind>,
    /// Maximum number of tokens of text in a result.
    pub max_tokens: usize,
    /// Idle timeout of a session.
    #[serde(with = "Time")]
    pub idle_timeout: Duration,
    /// Action at the idle timeout of a session: `end`, or `hibernate`, which frees its memory and keeps its
    /// files, and with the backends `gvisor` and `microvm` also its variables.
    pub on_idle: OnIdle,
    /// Time after which a session ends that was hibernated because it was idle.
    #[serde(with = "Time")]
    pub hibernation_timeout: Duration,
    /// Maximum number of sessions at a time. Beyond it, the idle session that was not used for the
    /// longest time makes room.
    pub max_sessions: usize,
    /// Maximum number of sessions at a time per key. Beyond it, the idle session of that key that
    /// was not used for the longest time makes room.
    pub max_sessions_per_key: usize,
    /// Clients that get charts and pictures as images, after the text: `auto` (those that are known to show
    /// images to their model: Claude, Claude Code, Cursor, VS Code and the Inspector), `always` or `never`.
    /// Most others put images into the model's text, or drop them.
    pub images: ImageDisplay,
    /// Add links to files and outputs after the text. Their URIs are in the text and in the
    /// structured content anyway, and some frameworks fail on links.
    pub links: bool,
    /// Maximum time of a call before a client that supports tasks gets a task instead of the result.
    #[serde(with = "Time")]
    pub task_after: Duration,
    /// Read-only files in `/tmp/data` of every session, by their name there without an extension.
    pub datasets: BTreeMap<String, PathBuf>,
    /// Project of all sessions, whose datasets their code can publish and load. Each key has its own
    /// project of this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Network that code of sessions can use: `none`, `loopback` for servers on `127.0.0.1` and `::1`
    /// inside the sandbox, or `egress`, which adds the hosts of the server's allow-list. Derivations
    /// need `none`.
    #[schemars(with = "String")]
    pub network: NetworkPolicy,
    /// Offer the tools, resources and prompts that the conformance suite of the protocol asks for,
    /// so that it can be run against this server; see `tests/clients/mcp/README.md`.
    pub conformance_fixtures: bool,
    /// Hosts that code reaches with `egress`.
    #[serde(skip)]
    pub egress: Option<EgressPolicy>,
    /// Default timeout of code: that of the interpreter's limits.
    #[serde(skip)]
    pub cell_timeout: Duration,
    /// Maximum timeout that a call can set.
    #[serde(skip)]
    pub max_cell_timeout: Duration,
    /// Features that the backend of its sessions lacks: checkpoints, tries and forks have tools only where it
    /// has them.
    #[serde(skip)]
    pub lacks: &'static [Lack],
    /// Asked before a session is made and code is run.
    #[serde(skip)]
    pub meter: Arc<dyn Meter>,
    /// Check of code before it runs.
    #[serde(skip)]
    pub guard: Guard,
    /// Code that prepares each session.
    #[serde(skip)]
    pub setup: Vec<SetupSnippet>,
    /// Connectors of sessions, if the toolset `notebook` is offered.
    #[serde(skip)]
    pub connectors: Vec<Arc<dyn Connector>>,
}

impl Options {
    /// Returns how long a session lives while nobody uses it.
    pub(crate) fn lifetime(&self) -> Duration {
        match self.on_idle {
            OnIdle::End => self.idle_timeout,
            OnIdle::Hibernate => self.idle_timeout.saturating_add(self.hibernation_timeout),
        }
    }

    /// Returns the connectors of an owner's sessions.
    pub(crate) async fn connectors(&self, owner: &Owner) -> Result<Vec<Arc<dyn Connector>>, MeterDenial> {
        if self.toolsets.contains(&notebook::KIND) {
            self.meter.connectors(owner, &self.connectors).await
        } else {
            Ok(Vec::new())
        }
    }

    /// Returns the skills of a session of this owner. Code that derives from results has none.
    pub(crate) async fn skills(&self, owner: &Owner) -> Result<Vec<SessionSkill>, MeterDenial> {
        if self.toolsets.iter().any(|kind| kind.on_results) {
            return Ok(Vec::new());
        }
        self.meter.skills(owner).await
    }

    /// Returns the first toolset that runs cells, and the name of its tool for one.
    pub(crate) fn cells(&self) -> Option<(ToolsetKind, String)> {
        let kind = *self.toolsets.iter().find(|kind| kind.runs_cells())?;
        let tool = (kind.definitions)(&self.terms("")).into_iter().next()?;
        Some((kind, tool.name))
    }

    /// Returns the terms that the toolsets of this session are granted.
    pub(crate) fn terms(&self, session: &str) -> ToolsetTerms {
        ToolsetTerms {
            owner: session.to_owned(),
            timeout: self.cell_timeout,
            max_timeout: self.max_cell_timeout,
            datasets: self.datasets.keys().cloned().collect(),
            ..ToolsetTerms::default()
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            serve: true,
            toolsets: vec![python::KIND],
            max_tokens: 8000,
            idle_timeout: Duration::from_mins(30),
            on_idle: OnIdle::End,
            hibernation_timeout: Duration::from_hours(24),
            max_sessions: 256,
            max_sessions_per_key: 16,
            images: ImageDisplay::Auto,
            links: false,
            task_after: Duration::from_secs(5),
            datasets: BTreeMap::new(),
            project: None,
            network: NetworkPolicy::None,
            conformance_fixtures: false,
            egress: None,
            cell_timeout: Limits::default().cell_timeout,
            max_cell_timeout: MAX_CELL_TIMEOUT,
            lacks: &Lack::ALL,
            meter: Arc::new(UnlimitedMeter),
            guard: Guard::default(),
            setup: Vec::new(),
            connectors: Vec::new(),
        }
    }
}
