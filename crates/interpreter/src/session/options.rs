//! Options of a session.

use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "egress")]
use cellblock_egress::EgressPolicy;
use cellblock_protocol::{Guard, Rescue};
use cellblock_sandbox::Limits;

use crate::connector::{Connector, FetchAllowance};
use crate::project::Project;
use crate::run_record::RunSink;
use crate::session::branches::hibernate::OnIdle;
use crate::session::runtime::setup::SetupSnippet;
#[cfg(feature = "egress")]
use crate::session::runtime::way_out::EgressLog;
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
    /// Volume whose files it has in `/workspace/volume`.
    pub volume: Option<SessionVolume>,
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
            volume: None,
            runs: None,
        }
    }
}
