//! `POST /v1/sessions`.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use cellblock_agent::wire::SkillRequest;
use cellblock_interpreter::Session;
use cellblock_interpreter::builder::BackendKind;
use cellblock_interpreter::cell::{Guard, Rescue, check_size};
use cellblock_interpreter::connector::Connector;
use cellblock_interpreter::limits::{Limits, NetworkPolicy};
use cellblock_interpreter::project::Project;
use cellblock_interpreter::session::hibernate::OnIdle;
use cellblock_interpreter::session::{SessionOptions, SetupSnippet};
use cellblock_interpreter::skill::SessionSkill;
use cellblock_interpreter::toolset::{ToolsetKind, ToolsetTerms, notebook, python};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::answer::SessionAnswer;
use super::body;
use super::inputs::{self, InputValue};
use super::network::RequestedNetwork;
use super::{limits, volume};
use crate::json::Json;
use crate::problem::Problem;
use crate::projects;
use crate::quotas::SandboxPermit;
use crate::replicas;
use crate::skills;
use crate::state::network::RawPolicy;
use crate::state::sessions::{RestSession, SessionTerms, StoredCells, VolumeAccess, VolumeOfSession};
use crate::state::{Caller, Gateway, described};

/// Sets of names that a kernel knows.
const PRELUDES: [&str; 4] = ["analysis", "documents", "derivation", "notebook"];
/// Name of a request's setup code in tracebacks and notes.
const SETUP: &str = "<setup>";

/// Options of a new session.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct CreateRequest {
    /// Toolset of the session.
    #[schema(default = "interpreter", value_type = crate::openapi::ToolsetName)]
    toolset: Option<String>,
    /// Limits below those of the gateway; `limits` of a session lists them. A derivation always
    /// uses the gateway's limits.
    #[schema(value_type = Object)]
    limits: Map<String, Value>,
    /// Network that code can use: `none`, `loopback` for servers on `127.0.0.1` and `::1` inside the
    /// sandbox, or `egress` for the hosts of its allow-list as well; where the gateway and the key allow it.
    #[schema(value_type = Option<String>)]
    network: Option<NetworkPolicy>,
    /// Hosts that code can use, of those that the gateway allows, and secrets for them, in the form of
    /// OpenAI's containers: `{type: "allowlist", allowed_domains, domain_secrets}`. `network` is then
    /// `egress`.
    #[schema(value_type = Option<Object>)]
    network_policy: Option<RawPolicy>,
    /// Sets of names to bind at the start: `analysis`, `documents`, `derivation`, `notebook`
    /// (`print` shows a data frame or a chart as an output). By default those of the toolset.
    prelude: Option<Vec<String>>,
    /// Level of the check before code runs: `off`, `standard` or `strict`. By default that of the
    /// gateway (`cells.guard`), which is also the lowest possible.
    #[schema(value_type = Option<String>)]
    guard: Option<Guard>,
    /// Code that prepares the session: it runs before the first cell, and again after a reset and in
    /// each new kernel.
    setup: Option<String>,
    /// Packages that code and commands have in addition to those of the image, such as
    /// `six==1.17.0`, if the image and the server permit them. They are installed before the first
    /// cell or command. A derivation has none.
    requirements: Vec<String>,
    /// Whether variables survive a cell that kills its kernel: `off`, `idle` or `on`.
    #[schema(value_type = Option<String>)]
    rescue: Option<Rescue>,
    /// Idle timeout of the session in seconds.
    idle_timeout: Option<f64>,
    /// Action after the idle timeout: `end`, or `hibernate`, which frees the session's memory and keeps its
    /// files, and its variables if the backend can. A hibernated session ends when it is not used for the
    /// gateway's `sessions.hibernation_timeout`. By default what the gateway has in `sessions.on_idle`.
    #[schema(value_type = Option<String>)]
    on_idle: Option<OnIdle>,
    /// Connectors that code can call, of those that the operator offers to code. By default all of them in
    /// a `notebook`, and none in a session with another toolset.
    connectors: Option<Vec<String>>,
    /// Project of the caller whose datasets code can publish and load. A derivation has none.
    project: Option<String>,
    /// Datasets of the project that code may load without having looked at them, by slug.
    seen: Vec<String>,
    /// Skills that code finds in `/skills`, each a `skill_reference` or `inline`, as in `POST
    /// /v1/containers`. A derivation has none.
    #[schema(value_type = Vec<Object>)]
    skills: Vec<Value>,
    /// Volume whose files the session has in `/workspace/volume`; it is created if it does not exist.
    /// Changes are saved after each cell. A derivation has none.
    volume: Option<String>,
    /// Access to the volume: `write`, for one session at a time, or `read` for a copy of its last
    /// revision.
    #[schema(value_type = Option<String>, default = "write")]
    volume_access: Option<VolumeAccess>,
    /// Weakest backend behind which the session may run: `process`, `gvisor` or `microvm`. The request
    /// is rejected if the server's is weaker.
    #[schema(value_type = Option<String>)]
    minimum_backend: Option<BackendKind>,
    /// Inputs to bind before the first cell.
    #[schema(value_type = Object)]
    inputs: BTreeMap<String, InputValue>,
}

/// Creates a session. Its sandbox is created on first use.
#[utoipa::path(
    post, operation_id = "create_session", path = "/v1/sessions", tag = "sessions",
    request_body = CreateRequest,
    responses(
        (status = 201, description = "The session", body = crate::openapi::Session),
        (status = 400, description = "A field is invalid", body = crate::openapi::Error),
        (status = 404, description = "There is no such volume to read", body = crate::openapi::Error),
        (status = 409, description = "Another session writes the volume; the message names it",
            body = crate::openapi::Error),
        (status = 429, description = "The caller has too many sessions or volumes",
            body = crate::openapi::Error),
    )
)]
pub(crate) async fn create(
    State(gateway): State<Gateway>,
    caller: Caller,
    headers: HeaderMap,
    body: Bytes,
) -> Result<(StatusCode, Json<SessionAnswer>), Problem> {
    let mut request: CreateRequest = body::json_or_default(&headers, &body)?;
    gateway.engine.satisfies(request.minimum_backend)?;
    let toolset = toolset(&gateway, request.toolset.as_deref())?;
    let mut terms = terms(&gateway, toolset, &request)?;
    let requested = RequestedNetwork {
        network: request.network,
        policy: request.network_policy.as_ref(),
    };
    let (network, egress) = requested.permitted(&gateway, &caller, toolset).await?;
    terms.limits.network = network;
    let connectors = connectors(&gateway, &caller, toolset, request.connectors.as_deref()).await?;
    let project = joined(&gateway, &caller, toolset, &request)?;
    let skills = skills(&gateway, &caller, toolset, &request.skills, &terms.limits).await?;
    let volume = volume::named(toolset, request.volume.take(), request.volume_access)?;
    let id = replicas::mint_session(&gateway);
    let permit = gateway.quotas.sandbox(&caller.owner).await?;
    let place = gateway.sessions.0.reserve(&caller.owner, &id)?;
    let interpreter = gateway.interpreter()?;
    let changed = terms.limits != *interpreter.limits();
    let of_session = SessionOptions {
        prelude: terms.prelude.clone(),
        guard: terms.guard,
        setup: setup(&gateway, toolset, request.setup)?,
        limits: changed.then(|| terms.limits.clone()),
        requirements: requirements(&gateway, toolset, request.requirements)?,
        rescue: terms.rescue,
        idle: terms.idle,
        on_idle: terms.on_idle,
        hibernation: terms.hibernation,
        connectors: connectors.clone(),
        project,
        seen: request.seen,
        skills,
        egress,
        ..gateway.granted(&caller.owner, Some(&id))
    };
    let disk = terms.limits.disk_bytes;
    let (session, volume) = volume::begin(&gateway, &caller, volume, disk, of_session).await?;
    let opening = SessionParts {
        toolset,
        terms,
        connectors,
        volume,
        permit,
    };
    let held = opening.open(&gateway, &id, session).await?;
    for (name, given) in request.inputs {
        inputs::bind_given(&gateway, &caller, &held, &name, given).await?;
    }
    let held = Arc::clone(&*place.fill(held)?);
    Ok((StatusCode::CREATED, Json(SessionAnswer::of(&held))))
}

/// Parts of a new session in addition to the session of the interpreter.
pub(super) struct SessionParts {
    pub(super) toolset: ToolsetKind,
    pub(super) terms: SessionTerms,
    pub(super) connectors: Vec<Arc<dyn Connector>>,
    pub(super) volume: Option<VolumeOfSession>,
    pub(super) permit: SandboxPermit,
}

impl SessionParts {
    /// Opens the toolset of a session, which has no inputs and cells yet.
    pub(super) async fn open(
        self,
        gateway: &Gateway,
        id: &str,
        session: Session,
    ) -> Result<RestSession, Problem> {
        let longest = gateway.options.max_cell_timeout;
        let usual = ToolsetTerms::default();
        let granted = ToolsetTerms {
            owner: id.to_owned(),
            timeout: usual.timeout.min(longest),
            max_timeout: longest,
            connectors: self.connectors.clone(),
            ..usual
        };
        let tools = (self.toolset.open)(gateway.interpreter()?, session.clone(), &granted).await?;
        let kept = &gateway.options.sessions;
        Ok(RestSession {
            toolset: self.toolset,
            terms: self.terms,
            connectors: self.connectors,
            volume: self.volume,
            session,
            tools,
            definitions: OnceLock::new(),
            cells: Mutex::new(StoredCells::new(kept.max_cells, kept.max_cell_bytes)),
            tried: Mutex::default(),
            stream: Mutex::default(),
            inputs: Mutex::default(),
            data: AtomicU64::new(0),
            _permit: self.permit,
        })
    }
}

fn toolset(gateway: &Gateway, name: Option<&str>) -> Result<ToolsetKind, Problem> {
    let name = name.unwrap_or(python::KIND.name);
    let kinds = &gateway.options.sessions.toolsets;
    kinds
        .iter()
        .find(|kind| kind.name == name)
        .copied()
        .ok_or_else(|| {
            let known: Vec<_> = kinds.iter().map(|kind| kind.name).collect();
            let message = format!("there is no toolset {name:?}; there are {}", known.join(", "));
            Problem::invalid("toolset", message)
        })
}

fn joined(
    gateway: &Gateway,
    caller: &Caller,
    toolset: ToolsetKind,
    request: &CreateRequest,
) -> Result<Option<Project>, Problem> {
    match &request.project {
        Some(_) if toolset.on_results => {
            let message = "a derivation uses only the results that its contract names; leave the project out";
            Err(Problem::invalid("project", message))
        }
        Some(name) => projects::project(gateway, caller, name).map(Some),
        None if request.seen.is_empty() => Ok(None),
        None => Err(Problem::invalid(
            "seen",
            "it names datasets of a project; give `project`, too, or leave it out",
        )),
    }
}

async fn connectors(
    gateway: &Gateway,
    caller: &Caller,
    toolset: ToolsetKind,
    names: Option<&[String]>,
) -> Result<Vec<Arc<dyn Connector>>, Problem> {
    let offered = gateway.connectors(&caller.owner).await?;
    let Some(names) = names else {
        let all = toolset == notebook::KIND;
        return Ok(if all { offered } else { Vec::new() });
    };
    if toolset != notebook::KIND && !names.is_empty() {
        let message = format!(
            "a session with the toolset {:?} cannot have any; create it with \"notebook\"",
            toolset.name
        );
        return Err(Problem::invalid("connectors", message));
    }
    if let Some(unknown) = names
        .iter()
        .find(|name| offered.iter().all(|it| it.name() != name.as_str()))
    {
        let message = format!("there is no connector {unknown:?}; {}", described(&offered));
        return Err(Problem::invalid("connectors", message));
    }
    let chosen = offered
        .iter()
        .filter(|it| names.iter().any(|name| name == it.name()));
    Ok(chosen.cloned().collect())
}

/// Returns the gateway's level, or a stricter one that a request asks for.
fn guard(gateway: &Gateway, toolset: ToolsetKind, asked: Option<Guard>) -> Result<Guard, Problem> {
    let least = if toolset.on_results {
        Guard::Off
    } else {
        gateway.options.cells.guard
    };
    match asked {
        Some(asked) if asked < least => {
            let message = format!(
                "it is {:?}, and this gateway requires at least {:?}; leave it out",
                asked.name(),
                least.name()
            );
            Err(Problem::invalid("guard", message))
        }
        asked => Ok(asked.unwrap_or(least)),
    }
}

/// Returns the packages of a session, after a check that they may be required.
fn requirements(gateway: &Gateway, toolset: ToolsetKind, asked: Vec<String>) -> Result<Vec<String>, Problem> {
    if toolset.on_results && !asked.is_empty() {
        let message = "a derivation has only the packages of the image; leave them out";
        return Err(Problem::invalid("requirements", message));
    }
    let checked = gateway.interpreter()?.check_requirements(&asked);
    checked.map_err(|error| Problem::invalid("requirements", error.to_string()))?;
    Ok(asked)
}

/// Returns the skills of a session with these limits.
async fn skills(
    gateway: &Gateway,
    caller: &Caller,
    toolset: ToolsetKind,
    asked: &[Value],
    limits: &Limits,
) -> Result<Vec<SessionSkill>, Problem> {
    if toolset.on_results && !asked.is_empty() {
        let message = "a derivation uses only the results that its contract names; leave the skills out";
        return Err(Problem::invalid("skills", message));
    }
    let asked = SkillRequest::parse_all(asked, "skills")?;
    Ok(skills::requested(gateway, &caller.owner, &asked, Some(limits), "skills").await?)
}

/// Returns the code that prepares a session: the operator's, then the request's.
fn setup(
    gateway: &Gateway,
    toolset: ToolsetKind,
    asked: Option<String>,
) -> Result<Vec<SetupSnippet>, Problem> {
    if toolset.on_results {
        return Ok(Vec::new());
    }
    check_size("setup", asked.as_deref())?;
    let asked = asked.map(|code| SetupSnippet {
        name: SETUP.to_owned(),
        code,
        guarded: true,
    });
    let operators = gateway.options.cells.snippets.iter().cloned();
    Ok(operators.chain(asked).collect())
}

fn terms(gateway: &Gateway, toolset: ToolsetKind, request: &CreateRequest) -> Result<SessionTerms, Problem> {
    let usual = SessionOptions::default();
    if toolset.on_results
        && (!request.limits.is_empty()
            || request.prelude.is_some()
            || request.guard.is_some()
            || request.setup.is_some()
            || request.rescue.is_some())
    {
        return Err(Problem::invalid(
            "toolset",
            "a derivation has limits, prelude, guard, setup and rescue of its own; leave them out",
        ));
    }
    let prelude = match &request.prelude {
        None if toolset.prelude.is_empty() => usual.prelude,
        None => toolset.prelude.iter().copied().map(str::to_owned).collect(),
        Some(asked) => match asked.iter().find(|name| !PRELUDES.contains(&name.as_str())) {
            Some(unknown) => {
                let known = PRELUDES.join(", ");
                return Err(Problem::invalid(
                    "prelude",
                    format!("there is no prelude {unknown:?}; there are {known}"),
                ));
            }
            None => asked.clone(),
        },
    };
    let options = &gateway.options.sessions;
    let idle = match request.idle_timeout {
        None => options.idle_timeout,
        Some(seconds) => {
            let longest = options.max_idle_timeout;
            let idle = Duration::try_from_secs_f64(seconds).ok();
            idle.filter(|idle| *idle >= Duration::from_secs(1) && *idle <= longest)
                .ok_or_else(|| {
                    let message = format!("it is {seconds}; give 1 to {} seconds", longest.as_secs());
                    Problem::invalid("idle_timeout", message)
                })?
        }
    };
    Ok(SessionTerms {
        limits: limits::lowered(
            gateway.interpreter()?.limits(),
            gateway.options.max_cell_timeout,
            &request.limits,
        )?,
        prelude,
        guard: guard(gateway, toolset, request.guard)?,
        rescue: request.rescue.unwrap_or(usual.rescue),
        idle,
        on_idle: request.on_idle.unwrap_or(options.on_idle),
        hibernation: options.hibernation_timeout,
    })
}
