//! The daemon in a sandbox: its files, directories and processes.
//!
//! Bytes of files in the session's folders go through its guest, which opens them beneath a root.
//! Everything else about files is done by a program in the sandbox ([`files`](crate::files)), so that
//! links and names are only ever resolved there.

mod connect;
mod directory;
mod entry;
mod files;
mod follow;
mod metadata;
mod outside;
mod packed;
mod process;
mod started;
mod user;
mod watch;

use axum::Json;
use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::from_fn;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use cellblock_interpreter::session::processes::Processes;
use serde_json::{Value, json};

use super::error::Answer;
use super::place::{self, CODE, RequestSandbox};
use super::sandbox::HeldSandbox;
use super::state::E2b;
use crate::files::{ResourceUsage, measure};
pub(super) use process::start_command;
use started::ProcessTable;
use watch::Watchers;

/// State of a sandbox's daemon.
#[derive(Debug, Default)]
pub(super) struct Daemon {
    started: ProcessTable,
    watchers: Watchers,
}

impl Daemon {
    /// Describes a command that runs, if there is one.
    pub(super) fn running(&self, processes: Processes<'_>) -> Option<String> {
        let running = self.started.running(processes).into_iter().next()?;
        Some(running.describe())
    }
}

/// Use of resources by a sandbox, and the memory that it may use.
#[derive(Debug)]
pub(super) struct Metrics {
    used: ResourceUsage,
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

/// Measures a sandbox.
pub(super) async fn metrics(e2b: &E2b, held: &HeldSandbox) -> Answer<Metrics> {
    Ok(Metrics {
        used: measure(&held.session).await?,
        mem_total: e2b.host.interpreter.limits().memory_bytes,
    })
}

impl Metrics {
    fn daemon(&self) -> Value {
        const MIB: u64 = 1 << 20;
        let used = &self.used;
        json!({
            "ts": used.ts, "cpu_count": used.cpu_count, "cpu_used_pct": used.cpu_used_pct,
            "mem_total": self.mem_total, "mem_used": used.mem_used, "mem_cache": 0,
            "mem_total_mib": self.mem_total / MIB, "mem_used_mib": used.mem_used / MIB,
            "disk_used": used.disk_used, "disk_total": used.disk_total,
        })
    }

    /// The same for the control API.
    pub(super) fn control(&self) -> Value {
        let used = &self.used;
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(used.ts.min(1 << 40));
        json!({
            "timestamp": super::control::iso(time), "timestampUnix": used.ts, "cpuCount": used.cpu_count,
            "cpuUsedPct": used.cpu_used_pct, "memUsed": used.mem_used, "memTotal": self.mem_total,
            "memCache": 0, "diskUsed": used.disk_used, "diskTotal": used.disk_total,
        })
    }
}
