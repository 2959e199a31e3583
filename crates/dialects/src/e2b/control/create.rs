//! `POST /sandboxes`, and the one sandbox of debug mode.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use bytes::Bytes;
use cellblock_interpreter::hosting::Owner;
use cellblock_interpreter::limits::NetworkPolicy;
use cellblock_interpreter::mint;
use cellblock_interpreter::session::SetupSnippet;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::super::code::Contexts;
use super::super::envd::Daemon;
use super::super::error::{Answer, Problem};
use super::super::paths::HOME;
use super::super::place::{Caller, ID};
use super::super::sandbox::{HeldSandbox, Life, Sandbox};
use super::super::secret::Token;
use super::super::state::{E2b, FOREVER};
use super::answer::Connected;
use crate::host::SessionWish;

/// Names that stand for the server's image: E2B's base template, and that of its code interpreter.
const TEMPLATES: [&str; 3] = ["base", "code-interpreter-v1", "code-interpreter-beta"];
/// Timeout in seconds, unless another is given: what E2B's clients promise.
pub(super) const TIMEOUT: u64 = 300;
/// Bytes of metadata, and of environment variables.
const MAX_TEXT: usize = 64 * 1024;

/// A sandbox to create. Fields that only other sandboxes have are looked at so that they are refused by name.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct NewSandbox {
    #[serde(rename = "templateID")]
    template: Option<String>,
    timeout: Option<u64>,
    auto_pause: bool,
    auto_resume: Option<AutoResume>,
    secure: Option<bool>,
    #[serde(rename = "allow_internet_access")]
    internet: Option<bool>,
    network: Option<NetworkConfig>,
    metadata: Option<BTreeMap<String, String>>,
    env_vars: Option<BTreeMap<String, String>>,
    mcp: Option<Value>,
    iam: Option<Value>,
    volume_mounts: Option<Vec<Value>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AutoResume {
    enabled: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct NetworkConfig {
    allow_public_traffic: Option<bool>,
    allow_out: Option<Vec<String>>,
    deny_out: Option<Vec<String>>,
    egress_proxy: Option<Value>,
    rules: Option<Value>,
}

pub(super) async fn create(
    State(e2b): State<E2b>,
    Caller(owner): Caller,
    body: Bytes,
) -> Answer<(StatusCode, Json<Connected>)> {
    let request: NewSandbox =
        serde_json::from_slice(&body).map_err(|error| Problem::invalid(format!("invalid body: {error}")))?;
    request.check(&e2b)?;
    let timeout = lifetime(&e2b, request.timeout.unwrap_or(TIMEOUT))?;
    let held = open(&e2b, owner, &e2b.host.mint(ID), request, timeout).await?;
    Ok((StatusCode::CREATED, Json(Connected::of(&e2b, &held))))
}

/// Returns a timeout that a sandbox may have.
pub(super) fn lifetime(e2b: &E2b, seconds: u64) -> Answer<Duration> {
    let most = e2b.max_timeout().as_secs();
    if seconds > most {
        let message = format!("Timeout cannot be greater than {most} seconds");
        return Err(Problem::invalid(message));
    }
    Ok(Duration::from_secs(seconds))
}

/// Returns the one sandbox of clients in debug mode.
pub(in super::super) async fn shared(e2b: &E2b, owner: Owner) -> Answer<HeldSandbox> {
    let mut shared = e2b.shared.lock().await;
    if let Some(held) = shared.as_ref().and_then(|id| e2b.by_id(id)) {
        return Ok(held);
    }
    let request = NewSandbox {
        secure: Some(false),
        ..NewSandbox::default()
    };
    let id = mint("debug");
    let held = open(e2b, owner, &id, request, FOREVER).await?;
    *shared = Some(id);
    Ok(held)
}

async fn open(
    e2b: &E2b,
    owner: Owner,
    id: &str,
    request: NewSandbox,
    timeout: Duration,
) -> Answer<HeldSandbox> {
    let envs = request.env_vars.unwrap_or_default();
    let network = request.network.unwrap_or_default();
    let internet = request.internet != Some(false)
        && !network
            .deny_out
            .is_some_and(|denied| denied.iter().any(|it| it == "0.0.0.0/0"));
    let wish = SessionWish {
        id: id.to_owned(),
        idle: FOREVER,
        network: if internet {
            NetworkPolicy::Egress
        } else {
            NetworkPolicy::Loopback
        },
        prelude: Vec::new(),
        setup: vec![setup(&envs)],
    };
    let kept = Sandbox {
        owner: owner.clone(),
        template: request.template.unwrap_or_else(|| TEMPLATES[0].to_owned()),
        metadata: request.metadata.unwrap_or_default(),
        envs,
        started: SystemTime::now(),
        access: request.secure.unwrap_or(true).then(Token::new),
        traffic: (network.allow_public_traffic == Some(false)).then(Token::new),
        life: watch::Sender::new(Life {
            end: SystemTime::now() + timeout,
            is_paused: false,
            pauses: request.auto_pause,
            resumes: request.auto_resume.is_some_and(|it| it.enabled),
            timeout,
        }),
        contexts: Arc::new(Contexts::new()),
        daemon: Daemon::default(),
    };
    let held = e2b.host.open(&e2b.sandboxes, &owner, wish, kept).await?;
    e2b.watch(&held);
    if let Err(error) = held.session.prepare().await {
        e2b.sandboxes.end(&held).await;
        return Err(error.into());
    }
    Ok(held)
}

/// Code that gives a kernel what E2B's has.
fn setup(envs: &BTreeMap<String, String>) -> SetupSnippet {
    // A string of JSON is one of Python.
    let envs = json!(json!(envs).to_string());
    let home = json!(HOME);
    SetupSnippet {
        name: "<E2B>".to_owned(),
        code: format!(
            "import json as _json\n\
             from cellblock_kernel.e2b.session import install as _install\n\
             _install(display, globals(), {home}, _json.loads({envs}))\n\
             del _json, _install\n"
        ),
        guarded: false,
    }
}

impl NewSandbox {
    fn check(&self, e2b: &E2b) -> Answer<()> {
        let template = self.template.as_deref().unwrap_or_default();
        let name = template.split(':').next().unwrap_or_default();
        let is_known = TEMPLATES.contains(&name) || e2b.options.templates.iter().any(|it| it == name);
        if template.is_empty() {
            return Err(Problem::invalid(
                "`templateID` is missing; use \"base\" or \"code-interpreter-v1\"",
            ));
        }
        if !is_known {
            return Err(Problem::not_found(format!(
                "template '{template}' not found; this server has one image, which \"base\" and \"code-interpreter-v1\" stand for, and \
                 the names that `dialects: {{e2b: {{templates: […]}}}}` lists"
            )));
        }
        let network = self.network.as_ref();
        let refused = [
            (
                self.mcp.is_some(),
                "MCP servers in a sandbox (`mcp`)",
                "run them in it with commands",
            ),
            (
                self.iam.is_some(),
                "identities of sandboxes (`iam`)",
                "pass credentials with `envs`",
            ),
            (
                self.volume_mounts.as_ref().is_some_and(|it| !it.is_empty()),
                "volumes (`volumeMounts`)",
                "write files into the sandbox",
            ),
            (
                network.is_some_and(|it| it.egress_proxy.is_some() || it.rules.is_some()),
                "egress proxies and rules of a sandbox (`network`)",
                "the operator sets the allowed hosts of the server",
            ),
            (
                network.is_some_and(|it| it.allow_out.as_ref().is_some_and(|list| !list.is_empty())),
                "allow-lists of a sandbox (`network.allowOut`)",
                "the operator sets the allowed hosts of the server",
            ),
        ];
        for (is_asked, what, instead) in refused {
            if is_asked {
                return Err(Problem::not_served(what, instead));
            }
        }
        for (name, map) in [("metadata", &self.metadata), ("envVars", &self.env_vars)] {
            let pairs = map.iter().flatten();
            let bytes: usize = pairs.map(|(name, value)| name.len() + value.len()).sum();
            if bytes > MAX_TEXT {
                return Err(Problem::invalid(format!(
                    "`{name}` has {bytes} bytes, the limit is {MAX_TEXT}"
                )));
            }
        }
        let names = self
            .env_vars
            .iter()
            .flatten()
            .flat_map(|(name, value)| [name, value]);
        if let Some(wrong) = names.clone().find(|it| it.contains('\0')) {
            return Err(Problem::invalid(format!(
                "`envVars`: {wrong:?} contains a NUL character"
            )));
        }
        let keys = self.env_vars.iter().flatten().map(|(name, _)| name);
        if let Some(wrong) = keys.clone().find(|it| it.is_empty() || it.contains('=')) {
            return Err(Problem::invalid(format!(
                "`envVars`: {wrong:?} is not the name of a variable"
            )));
        }
        Ok(())
    }
}
