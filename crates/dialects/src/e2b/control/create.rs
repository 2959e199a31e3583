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
use serde::de::IgnoredAny;
use serde_json::json;
use tokio::sync::watch;

use super::super::body::read;
use super::super::code::{Contexts, set_variables};
use super::super::envd::{Daemon, start_command};
use super::super::error::{Answer, Problem};
use super::super::paths::HOME;
use super::super::place::{Caller, ID};
use super::super::sandbox::{HeldSandbox, Life, LifeState, Sandbox};
use super::super::secret::Token;
use super::super::snapshot::{HeldSnapshot, SnapshotLabel};
use super::super::state::{E2b, FOREVER};
use super::super::templates::{self as built, BuiltTemplate, await_ready, is_pause};
use super::super::volumes::{FOLDER, VolumeMount};
use super::answer::SandboxAnswer;
use super::request::NewSandbox;
use super::retries::Attempt;
use super::templates::{self, TEMPLATES, is_served};
use crate::files::operate;
use crate::host::SessionWish;

/// Timeout in seconds, unless another is given: what E2B's clients promise.
pub(super) const TIMEOUT: u64 = 300;

/// State that a sandbox begins with.
enum SandboxOrigin {
    /// That of the server's image.
    Image,
    Snapshot(HeldSnapshot),
    Template(Box<BuiltTemplate>),
}

impl SandboxOrigin {
    /// Finds what a name stands for.
    async fn find(e2b: &E2b, owner: &Owner, name: &str) -> Answer<Self> {
        if let Some(snapshot) = e2b.snapshot(owner, name) {
            return Ok(Self::Snapshot(snapshot));
        }
        if !is_served(SnapshotLabel::new(name).name(), &e2b.options)
            && let Some(template) = e2b.built(owner, name).await?
        {
            return Ok(Self::Template(Box::new(template)));
        }
        templates::check(name, &e2b.options)?;
        Ok(Self::Image)
    }

    /// Returns its variables and its working directory.
    fn surroundings(&self) -> (BTreeMap<String, String>, String) {
        match self {
            Self::Image => (BTreeMap::new(), HOME.to_owned()),
            Self::Snapshot(it) => (it.kept.envs.clone(), it.kept.workdir.clone()),
            Self::Template(it) => (it.record.envs.clone(), it.record.workdir.clone()),
        }
    }
}

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
    let id = e2b.host.mint(ID);
    let held = match attempt {
        Some(Attempt::Repeated(id)) => e2b.of(&owner, &id)?,
        attempt => {
            let origin = SandboxOrigin::find(&e2b, &owner, request.template()).await?;
            let making = e2b.clone();
            // Also without the client: one that tries again with the same key gets this one, and a
            // volume that was opened has a sandbox that releases it.
            let made = e2b.host.tasks.spawn(async move {
                let held = open(&making, owner, &id, request, timeout, &origin).await?;
                if let Some(Attempt::First(first)) = attempt {
                    first.succeed(&held.id);
                }
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
    let held = open(e2b, owner.clone(), &id, request, FOREVER, &SandboxOrigin::Image).await?;
    shared.insert(owner.name().to_owned(), id);
    Ok(held)
}

async fn open(
    e2b: &E2b,
    owner: Owner,
    id: &str,
    request: NewSandbox,
    timeout: Duration,
    origin: &SandboxOrigin,
) -> Answer<HeldSandbox> {
    let (pauses, resumes) = (request.auto_pause.unwrap_or_default(), request.resumes());
    let drops_memory = request.auto_pause_memory == Some(false);
    let template = match (origin, request.template()) {
        (SandboxOrigin::Snapshot(snapshot), _) => snapshot.kept.label.full(),
        (_, "") => TEMPLATES[0].to_owned(),
        (_, name) => name.to_owned(),
    };
    let envs = request.env_vars.unwrap_or_default().into_inner();
    let rules = request.network.unwrap_or_default().rules(request.internet)?;
    let (inherited, workdir) = origin.surroundings();
    let mounts = request.volume_mounts.unwrap_or_default();
    if let (SandboxOrigin::Snapshot(_), Some(mount)) = (origin, mounts.first()) {
        let why = "a sandbox of a snapshot has no volume; create one of a template";
        return Err(Problem::unenforced("volumeMounts", mount, why));
    }
    let kept = Sandbox {
        owner: owner.clone(),
        template,
        metadata: request.metadata.unwrap_or_default().into_inner(),
        envs: inherited.into_iter().chain(envs.clone()).collect(),
        contexts: Arc::new(match origin {
            SandboxOrigin::Snapshot(snapshot) => snapshot.kept.contexts.copy(),
            _ => Contexts::new(&workdir),
        }),
        mounts,
        workdir,
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
        daemon: Daemon::default(),
    };
    let held = match origin {
        SandboxOrigin::Snapshot(snapshot) => restore(e2b, &owner, id, kept, snapshot).await?,
        SandboxOrigin::Template(template) => start(e2b, &owner, id, kept, Some(template)).await?,
        SandboxOrigin::Image => start(e2b, &owner, id, kept, None).await?,
    };
    e2b.watch(&held);
    if let Err(problem) = prepare(e2b, &held, origin, &envs).await {
        e2b.sandboxes.end(&held).await;
        return Err(problem);
    }
    Ok(held)
}

/// Makes a sandbox ready for its first request.
async fn prepare(
    e2b: &E2b,
    held: &HeldSandbox,
    origin: &SandboxOrigin,
    envs: &BTreeMap<String, String>,
) -> Answer<()> {
    held.session.prepare().await?;
    for link in held.kept.mounts.iter().filter_map(VolumeMount::link) {
        let linked = json!({"path": link, "target": FOLDER});
        operate::<IgnoredAny>(&held.session, "/", "change.link", &linked).await?;
    }
    match origin {
        SandboxOrigin::Image => {}
        // A copied kernel has the variables of its snapshot.
        SandboxOrigin::Snapshot(_) if envs.is_empty() => {}
        SandboxOrigin::Snapshot(_) => {
            let envs = envs
                .iter()
                .map(|(name, value)| (name.as_str(), Some(value.as_str())));
            let cell = set_variables(Language::Python, envs);
            held.session.execute(cell).await?;
        }
        SandboxOrigin::Template(template) => {
            let record = &template.record;
            if let Some(command) = &record.start {
                start_command(e2b, held, command).await?;
            }
            if let Some(command) = record.ready.as_ref().filter(|it| !is_pause(it)) {
                await_ready(&held.session, command, &record.workdir, &held.kept.envs).await?;
            }
        }
    }
    Ok(())
}

/// Starts a sandbox of the server's image, with the files of a template.
async fn start(
    e2b: &E2b,
    owner: &Owner,
    id: &str,
    kept: Sandbox,
    template: Option<&BuiltTemplate>,
) -> Answer<HeldSandbox> {
    let offered = e2b.host.network(owner).await?;
    let rules = kept.rules.lock().enforce(offered, e2b.host.egress.as_ref())?;
    let volume = match kept.mounts.first() {
        Some(mount) => Some(mount.open(e2b, owner, id).await?),
        None => None,
    };
    let wish = SessionWish {
        id: id.to_owned(),
        idle: FOREVER,
        network: rules.network,
        restriction: rules.restriction,
        headers: rules.headers,
        replaceable: true,
        prelude: vec!["analysis".to_owned()],
        setup: vec![setup(&kept.envs, template.map(|_| kept.workdir.as_str()))],
        archive: template.map(|it| it.archive),
        volume,
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
        setup: Some(e2b.host.setup_after(vec![setup(&kept.envs, None)])),
        ids: vec![id.to_owned()],
        ..ForkOptions::new(1)
    };
    let session = e2b.restore(snapshot, options).await?;
    Ok(place.fill(session, FOREVER, kept)?)
}

/// Code that gives a kernel what E2B's has.
fn setup(envs: &BTreeMap<String, String>, workdir: Option<&str>) -> SetupSnippet {
    // A string of JSON is one of Python.
    let envs = json!(json!(envs).to_string());
    let home = json!(HOME);
    SetupSnippet {
        name: "<E2B>".to_owned(),
        code: format!(
            "import json as _json\n\
             from cellblock_kernel.e2b.session import install as _install\n\
             _install(display, globals(), {home}, _json.loads({envs}))\n\
             del _json, _install\n\
             {}",
            workdir.map(built::setup).unwrap_or_default()
        ),
        guarded: false,
    }
}
