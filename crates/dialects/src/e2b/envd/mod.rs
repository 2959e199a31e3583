//! The daemon in a sandbox: its files, directories and processes.
//!
//! Bytes of files go through the session, whose guest opens them beneath a root. Everything else
//! about directories is done by a program in the sandbox ([`surveyor`]), so that links and names
//! are only ever resolved there.

mod connect;
mod directory;
mod entry;
mod files;
mod follow;
mod process;
mod started;
mod surveyor;
mod user;
mod watch;

use axum::Json;
use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::from_fn;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::{Answer, Problem};
use super::place::{self, CODE, RequestSandbox};
use super::sandbox::HeldSandbox;
use super::state::E2b;
use started::ProcessTable;
use surveyor::Surveyor;
use watch::Watchers;

/// State of a sandbox's daemon.
#[derive(Debug, Default)]
pub(super) struct Daemon {
    surveyor: Surveyor,
    started: ProcessTable,
    watchers: Watchers,
}

/// Use of resources by a sandbox, as its own programs see it.
#[derive(Debug, Deserialize)]
pub(super) struct Metrics {
    ts: u64,
    cpu_count: u64,
    cpu_used_pct: f64,
    mem_used: u64,
    mem_cache: u64,
    disk_used: u64,
    disk_total: u64,
    #[serde(skip)]
    mem_total: u64,
}

pub(super) fn routes() -> Router<E2b> {
    Router::new()
        .route("/health", get(health))
        .route("/envs", get(envs))
        .route("/metrics", get(own_metrics))
        .route("/files/compose", post(files::compose))
        .route("/filesystem.Filesystem/{method}", post(directory::call))
        .route("/process.Process/{method}", post(process::call))
        .layer(from_fn(user::check))
}

/// The routes whose bodies are files.
pub(super) fn file_routes() -> Router<E2b> {
    Router::new()
        .route("/files", get(files::read).post(files::write))
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn(user::check))
}

/// Answers for the daemon, and for the interpreter, which share an address here.
async fn health(
    State(e2b): State<E2b>,
    headers: HeaderMap,
    request: axum::extract::Request,
) -> Answer<Response> {
    let (mut parts, _) = request.into_parts();
    let (id, port) = place::named(&headers);
    if id.is_none() && parts.extensions.get::<place::DebugPort>().is_none() {
        return Ok("OK".into_response());
    }
    let open =
        <place::PortTarget as axum::extract::FromRequestParts<E2b>>::from_request_parts(&mut parts, &e2b)
            .await?;
    Ok(match (port, open.port) {
        (CODE, _) | (_, CODE) => Json("OK").into_response(),
        _ => StatusCode::NO_CONTENT.into_response(),
    })
}

async fn envs(RequestSandbox(held): RequestSandbox) -> Json<Value> {
    Json(json!(held.kept.envs))
}

async fn own_metrics(State(e2b): State<E2b>, RequestSandbox(held): RequestSandbox) -> Answer<Json<Value>> {
    Ok(Json(metrics(&e2b, &held).await?.daemon()))
}

/// Asks the sandbox what it uses.
pub(super) async fn metrics(e2b: &E2b, held: &HeldSandbox) -> Answer<Metrics> {
    let told = held
        .kept
        .daemon
        .surveyor
        .ask(held, &json!({"op": "metrics"}))
        .await;
    let told = told.map_err(Problem::from)?;
    let mut metrics: Metrics = serde_json::from_value(told)
        .map_err(|error| Problem::internal("read the metrics of a sandbox", &error))?;
    metrics.mem_total = e2b.host.interpreter.limits().memory_bytes;
    Ok(metrics)
}

impl Metrics {
    fn daemon(&self) -> Value {
        const MIB: u64 = 1 << 20;
        json!({
            "ts": self.ts, "cpu_count": self.cpu_count, "cpu_used_pct": self.cpu_used_pct,
            "mem_total": self.mem_total, "mem_used": self.mem_used, "mem_cache": self.mem_cache,
            "mem_total_mib": self.mem_total / MIB, "mem_used_mib": self.mem_used / MIB,
            "disk_used": self.disk_used, "disk_total": self.disk_total,
        })
    }

    /// The same for the control API.
    pub(super) fn control(&self) -> Value {
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(self.ts.min(1 << 40));
        json!({
            "timestamp": super::control::iso(time), "timestampUnix": self.ts, "cpuCount": self.cpu_count,
            "cpuUsedPct": self.cpu_used_pct, "memUsed": self.mem_used, "memTotal": self.mem_total,
            "memCache": self.mem_cache,
            "diskUsed": self.disk_used, "diskTotal": self.disk_total,
        })
    }
}
