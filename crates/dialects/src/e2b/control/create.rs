//! `POST /sandboxes`, and the one sandbox of debug mode.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use cellblock_interpreter::cell::Language;
use cellblock_interpreter::hosting::Owner;
use cellblock_interpreter::mint;
use cellblock_interpreter::session::SetupSnippet;
use cellblock_interpreter::session::fork::ForkOptions;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::watch;

use super::super::body::read;
use super::super::code::{Contexts, set_variables};
use super::super::envd::Daemon;
use super::super::error::{Answer, Problem};
use super::super::paths::HOME;
use super::super::place::{Caller, ID};
use super::super::sandbox::{HeldSandbox, Life, LifeState, Sandbox};
use super::super::secret::Token;
use super::super::snapshot::HeldSnapshot;
use super::super::state::{E2b, FOREVER};
use super::answer::SandboxAnswer;
use super::request::NewSandbox;
use super::retries::Attempt;
use super::templates::{self, TEMPLATES};
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
    request.check()?;
    let timeout = lifetime(&e2b, request.timeout.unwrap_or(TIMEOUT))?;
    let is_alive = |id: &str| e2b.by_id(id).is_some();
    let attempt = e2b.retries.begin(&owner, &headers, &body, is_alive).await?;
    let snapshot = e2b.snapshot(&owner, request.template());
    let is_repeated = matches!(attempt, Some(Attempt::Repeated(_)));
    if snapshot.is_none() && !is_repeated {
        templates::check(request.template(), &e2b.options)?;
    }
    let id = e2b.host.mint(ID);
    let held = match attempt {
        None => open(&e2b, owner, &id, request, timeout, snapshot.as_ref()).await?,
        Some(Attempt::Repeated(id)) => e2b.of(&owner, &id)?,
        Some(Attempt::First(first)) => {
            let making = e2b.clone();
            // A client that gives up and tries again gets this one.
            let made = e2b.host.tasks.spawn(async move {
                let held = open(&making, owner, &id, request, timeout, snapshot.as_ref()).await?;
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
    let request = NewSandbox::unsecured();
    let held = open(e2b, owner.clone(), &id, request, FOREVER, None).await?;
    shared.insert(owner.name().to_owned(), id);
    Ok(held)
}

async fn open(
    e2b: &E2b,
    owner: Owner,
    id: &str,
    request: NewSandbox,
    timeout: Duration,
    snapshot: Option<&HeldSnapshot>,
) -> Answer<HeldSandbox> {
    let (pauses, resumes) = (request.auto_pause.unwrap_or_default(), request.resumes());
    let drops_memory = request.auto_pause_memory == Some(false);
    let template = match (snapshot, request.template()) {
        (Some(snapshot), _) => snapshot.kept.label.full(),
        (None, "") => TEMPLATES[0].to_owned(),
        (None, name) => name.to_owned(),
    };
    let envs = request.env_vars.unwrap_or_default().into_inner();
    let rules = request.network.unwrap_or_default().rules(request.internet)?;
    let inherited = snapshot.map(|it| it.kept.envs.clone()).unwrap_or_default();
    let kept = Sandbox {
        owner: owner.clone(),
        template,
        metadata: request.metadata.unwrap_or_default().into_inner(),
        envs: inherited.into_iter().chain(envs.clone()).collect(),
        started: SystemTime::now(),
        access: request.secure.unwrap_or(true).then(Token::new),
        traffic: (!rules.is_public()).then(Token::new),
        rules: Mutex::new(rules),
        life: watch::Sender::new(Life {
            end: SystemTime::now() + timeout,
            state: LifeState::Running,
            pauses,
            drops_memory,
            resumes,
            timeout,
        }),
        contexts: Arc::new(snapshot.map_or_else(Contexts::new, |it| it.kept.contexts.copy())),
        daemon: Daemon::default(),
    };
    let held = match snapshot {
        Some(snapshot) => restore(e2b, &owner, id, kept, snapshot).await?,
        None => start(e2b, &owner, id, kept).await?,
    };
    e2b.watch(&held);
    let prepared = match held.session.prepare().await {
        // A copied kernel has the variables of its snapshot.
        Ok(_) if snapshot.is_some() && !envs.is_empty() => {
            let envs = envs
                .iter()
                .map(|(name, value)| (name.as_str(), Some(value.as_str())));
            let cell = set_variables(Language::Python, envs);
            held.session.execute(cell).await.map(drop)
        }
        prepared => prepared.map(drop),
    };
    if let Err(error) = prepared {
        e2b.sandboxes.end(&held).await;
        return Err(error.into());
    }
    Ok(held)
}

/// Starts a sandbox of the server's image.
async fn start(e2b: &E2b, owner: &Owner, id: &str, kept: Sandbox) -> Answer<HeldSandbox> {
    let offered = e2b.host.network(owner).await?;
    let rules = kept.rules.lock().enforce(offered, e2b.host.egress.as_ref())?;
    let wish = SessionWish {
        id: id.to_owned(),
        idle: FOREVER,
        network: rules.network,
        restriction: rules.restriction,
        headers: rules.headers,
        replaceable: true,
        prelude: vec!["analysis".to_owned()],
        setup: vec![setup(&kept.envs)],
        ..SessionWish::default()
    };
    Ok(e2b.host.open(&e2b.sandboxes, owner, wish, kept).await?)
}

/// Starts a sandbox with the state of a snapshot, which reaches no hosts.
async fn restore(
    e2b: &E2b,
    owner: &Owner,
    id: &str,
    kept: Sandbox,
    snapshot: &HeldSnapshot,
) -> Answer<HeldSandbox> {
    kept.rules.lock().enforce(snapshot.session.network(), None)?;
    let place = e2b.host.reserve(&e2b.sandboxes, owner, id).await?;
    let options = ForkOptions {
        setup: Some(e2b.host.setup_after(vec![setup(&kept.envs)])),
        ids: vec![id.to_owned()],
        ..ForkOptions::new(1)
    };
    let session = e2b.restore(snapshot, options).await?;
    Ok(place.fill(session, FOREVER, kept)?)
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
