//! Answers of the API about sessions.

use std::collections::BTreeMap;

use cellblock_interpreter::cell::{Guard, Rescue};
use cellblock_interpreter::input::InputFormat;
use cellblock_interpreter::limits::{Limits, NetworkPolicy};
use cellblock_interpreter::session::hibernate::OnIdle;
use cellblock_interpreter::skill::SessionSkill;
use cellblock_interpreter::toolset::ToolsetKind;
use cellblock_settings::clock;
use serde::Serialize;

use crate::state::sessions::{HostedSession, VolumeOfSession, lock};

/// A session.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct SessionAnswer {
    id: String,
    /// `session`.
    object: &'static str,
    toolset: ToolsetKind,
    /// Whether code is running in it, or it is hibernated.
    status: Status,
    /// In seconds since 1970, like the others.
    created_at: u64,
    last_used_at: u64,
    /// Time at which it ends if it is not used.
    expires_at: u64,
    /// Idle timeout in seconds.
    idle_timeout: f64,
    /// Action after the idle timeout: `end` or `hibernate`.
    #[schemars(with = "String")]
    on_idle: OnIdle,
    prelude: Vec<String>,
    /// Connectors that its code can call.
    connectors: Vec<String>,
    /// Project whose datasets its code can publish and load.
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    /// Skills that its code finds in `/skills`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skills: Vec<SkillAnswer>,
    /// Volume whose files it has in `/workspace/volume`.
    #[serde(skip_serializing_if = "Option::is_none")]
    volume: Option<VolumeOfSession>,
    /// Network that its code can use.
    #[schemars(with = "String")]
    network: NetworkPolicy,
    guard: Guard,
    rescue: Rescue,
    /// Number of cells that it has run.
    cells: u64,
    /// Number of the cell that was tried and is neither kept nor discarded. Other requests are
    /// rejected until it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    undecided_try: Option<u64>,
    inputs: BTreeMap<String, InputAnswer>,
    datasets: usize,
    /// Limits of the session; each can be lowered when a session is created.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    limits: Limits,
}

#[derive(Clone, Copy, Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "SessionStatus")]
enum Status {
    Idle,
    Busy,
    Hibernated,
}

/// An input that is bound.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct InputAnswer {
    format: InputFormat,
    bytes: u64,
}

/// A skill of a session.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
#[schemars(rename = "SessionSkill")]
pub(crate) struct SkillAnswer {
    /// ID of the skill; absent if it came with the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    name: String,
    description: String,
    version: String,
    /// Folder in which code finds it.
    path: String,
}

impl SkillAnswer {
    fn of(skill: &SessionSkill) -> Self {
        Self {
            id: skill.id.clone(),
            name: skill.name.clone(),
            description: skill.description.clone(),
            version: skill.version.clone(),
            path: skill.folder(),
        }
    }
}

impl SessionAnswer {
    pub(super) fn of(held: &HostedSession) -> Self {
        let used = clock::now().saturating_sub(held.idle());
        let bound = lock(&held.inputs);
        let inputs = bound.iter().map(|(name, bound)| {
            let (format, bytes) = (bound.format, bound.bytes);
            (name.clone(), InputAnswer { format, bytes })
        });
        Self {
            id: held.id.clone(),
            object: "session",
            toolset: held.toolset,
            status: if held.holds() > 0 {
                Status::Busy
            } else if held.session.is_hibernated() {
                Status::Hibernated
            } else {
                Status::Idle
            },
            created_at: clock::seconds_since_epoch(held.created),
            last_used_at: used.as_secs(),
            expires_at: (used + held.terms.lifetime()).as_secs(),
            idle_timeout: held.terms.idle.as_secs_f64(),
            on_idle: held.terms.on_idle,
            prelude: held.terms.prelude.clone(),
            connectors: held.connectors.iter().map(|it| it.name().to_owned()).collect(),
            project: held.session.member().map(|it| it.project().name().to_owned()),
            skills: held.session.skills().iter().map(SkillAnswer::of).collect(),
            volume: held.volume.clone(),
            network: held.terms.limits.network,
            guard: held.terms.guard,
            rescue: held.terms.rescue,
            cells: lock(&held.cells).ran(),
            undecided_try: lock(&held.tried).as_ref().map(|tried| tried.cell),
            inputs: inputs.collect(),
            datasets: held.session.datasets().len(),
            limits: Limits {
                network: NetworkPolicy::None,
                ..held.terms.limits.clone()
            },
        }
    }
}

/// A deleted object.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct DeletionAnswer {
    /// Type of the object, followed by `.deleted`.
    object: String,
    /// Its ID or path.
    id: String,
    /// `true`.
    deleted: bool,
}

impl DeletionAnswer {
    pub(super) fn new(what: &str, id: String) -> Self {
        Self {
            object: format!("{what}.deleted"),
            id,
            deleted: true,
        }
    }
}
