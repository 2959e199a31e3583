//! `POST /sandboxes`, and the one sandbox of debug mode.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use cellblock_interpreter::hosting::Owner;
use cellblock_interpreter::mint;
use cellblock_interpreter::session::SetupSnippet;
use serde_json::json;
use tokio::sync::watch;

use super::super::body::read;
use super::super::code::Contexts;
use super::super::envd::Daemon;
use super::super::error::{Answer, Problem};
use super::super::paths::HOME;
use super::super::place::{Caller, ID};
use super::super::sandbox::{HeldSandbox, Life, Sandbox};
use super::super::secret::Token;
use super::super::state::{E2b, FOREVER};
use super::answer::SandboxAnswer;
use super::request::NewSandbox;
use super::retries::Attempt;
use super::templates::TEMPLATES;
use crate::bounded::BoundedName;
use crate::host::SessionWish;

/// Timeout in seconds, unless another is given: what E2B's clients promise.
pub(super) const TIMEOUT: u64 = 300;

pub(super) async fn create(
    State(e2b): State<E2b>,
    Caller(owner): Caller,
    headers: HeaderMap,
    body: Bytes,
) -> Answer<(StatusCode, Json<SandboxAnswer>)> {
    let request: NewSandbox = read(&body)?;
    request.check(&e2b.options)?;
    let timeout = lifetime(&e2b, request.timeout.unwrap_or(TIMEOUT))?;
    let is_alive = |id: &str| e2b.by_id(id).is_some();
    let attempt = e2b.retries.begin(&owner, &headers, &body, is_alive).await?;
    let id = e2b.host.mint(ID);
    let held = match attempt {
        None => open(&e2b, owner, &id, request, timeout).await?,
        Some(Attempt::Repeated(id)) => e2b.of(&owner, &id)?,
        Some(Attempt::First(first)) => {
            let making = e2b.clone();
            // A client that gives up and tries again gets this one.
            let made = e2b.host.tasks.spawn(async move {
                let held = open(&making, owner, &id, request, timeout).await?;
                first.succeed(&held.id);
                Ok::<_, Problem>(held)
            });
            made.await
                .map_err(|error| Problem::internal("create a sandbox", &error))??
        }
    };
    Ok((StatusCode::CREATED, Json(SandboxAnswer::of(&e2b, &held))))
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

/// Returns the one sandbox of an owner's clients in debug mode.
pub(in super::super) async fn shared(e2b: &E2b, owner: Owner) -> Answer<HeldSandbox> {
    let mut shared = e2b.shared.lock().await;
    if let Some(held) = shared.get(owner.name()).and_then(|id| e2b.by_id(id)) {
        return Ok(held);
    }
    let id = mint("debug");
    let held = open(e2b, owner.clone(), &id, NewSandbox::unsecured(), FOREVER).await?;
    shared.insert(owner.name().to_owned(), id);
    Ok(held)
}

async fn open(
    e2b: &E2b,
    owner: Owner,
    id: &str,
    request: NewSandbox,
    timeout: Duration,
) -> Answer<HeldSandbox> {
    let envs = request.env_vars.unwrap_or_default().into_inner();
    let rules = request.network.unwrap_or_default().rules(request.internet)?;
    let offered = e2b.host.network(&owner).await?;
    let (network, restriction) = rules.enforce(offered, e2b.host.egress.as_ref())?;
    let wish = SessionWish {
        id: id.to_owned(),
        idle: FOREVER,
        network,
        restriction,
        prelude: vec!["analysis".to_owned()],
        setup: vec![setup(&envs)],
        ..SessionWish::default()
    };
    let kept = Sandbox {
        owner: owner.clone(),
        template: request
            .template
            .map_or_else(|| TEMPLATES[0].to_owned(), BoundedName::into_inner),
        metadata: request.metadata.unwrap_or_default().into_inner(),
        envs,
        started: SystemTime::now(),
        access: request.secure.unwrap_or(true).then(Token::new),
        traffic: (!rules.is_public()).then(Token::new),
        rules,
        life: watch::Sender::new(Life {
            end: SystemTime::now() + timeout,
            is_paused: false,
            pauses: request.auto_pause.unwrap_or_default(),
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
