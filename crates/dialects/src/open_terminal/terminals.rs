//! `/api/terminals`: shells of a person (`terminal_socket.rs`), and how a model looks at them.

use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{ConnectInfo, Path, State};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use cellblock_interpreter::session::processes::{
    MAX_INPUT, ProcessOrder, ProcessReport, ProcessSignal, ProcessState,
};
use chrono::{DateTime, SecondsFormat};
use serde::Deserialize;
use serde_json::{Value, json};

use super::arguments::json;
use super::chat::{Caller, HeldChat, OpenTerminal};
use super::problem::Problem;
use super::terminal_socket::serve;
use crate::terminal::SIZE;

/// Maximum size of the output that a model reads.
const PART: u64 = 64 * 1024;

#[derive(Debug, Deserialize, utoipa::ToSchema)]
pub(super) struct TypeRequest {
    /// Text to type. A line break submits what was typed.
    input: String,
}

/// `POST /api/terminals`.
pub(super) async fn create(
    State(terminal): State<OpenTerminal>,
    caller: Caller,
) -> Result<Json<Value>, Problem> {
    let held = terminal.chat(&caller).await?;
    let _permit = terminal.host.cell(&caller.owner).await?;
    let order = ProcessOrder {
        command: vec!["bash".to_owned(), "-i".to_owned()],
        directory: Some(held.kept.cwd()),
        terminal: Some(SIZE),
        ..ProcessOrder::default()
    };
    let started = held.session.processes().start(order).await?;
    Ok(Json(about(&terminal, &started)))
}

/// `GET /api/terminals`.
pub(super) async fn list(State(terminal): State<OpenTerminal>, caller: Caller) -> Json<Value> {
    let held = terminal.existing(&caller);
    let all = held
        .map(|held| held.session.processes().list())
        .unwrap_or_default();
    Json(
        all.iter()
            .filter(|it| is_live(it))
            .map(|it| about(&terminal, it))
            .collect(),
    )
}

/// `GET /api/terminals/{id}`, which is a WebSocket if the request asks for one.
pub(super) async fn open(
    State(terminal): State<OpenTerminal>,
    Path(id): Path<String>,
    ConnectInfo(peer): ConnectInfo<std::net::SocketAddr>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let id = inside(&id).to_owned();
    if let Ok(upgrade) = upgrade {
        let tasks = terminal.host.tasks.clone();
        let upgrade = upgrade.max_message_size(MAX_INPUT).max_frame_size(MAX_INPUT);
        return Ok(upgrade.on_upgrade(move |socket| {
            tasks.track_future(async move { serve(&terminal, &id, peer, &headers, socket).await })
        }));
    }
    let secret = crate::presented::secret(&headers, &["bearer"]);
    let owner = terminal.host.owner(secret, "/api/terminals", Some(peer)).await?;
    let (_, report) = find(&terminal, &Caller::new(owner, &headers, None)?, &id)?;
    Ok(Json(about(&terminal, &report)).into_response())
}

/// `DELETE /api/terminals/{id}`.
pub(super) async fn delete(
    State(terminal): State<OpenTerminal>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let id = inside(&id);
    let (held, _) = find(&terminal, &caller, id)?;
    held.session.processes().signal(id, ProcessSignal::KILL).await?;
    Ok(Json(json!({"status": "deleted"})))
}

/// Read what the user's own terminal shows last. Read it before typing there: a program may be running in it.
#[utoipa::path(get, path = "/api/terminals/user/output", operation_id = "read_user_terminal",
    responses((status = 200, description = "The last 64 KiB of its output", body = Object)))]
pub(super) async fn read(
    State(terminal): State<OpenTerminal>,
    caller: Caller,
) -> Result<Json<Value>, Problem> {
    let (held, id) = of_user(&terminal, &caller)?;
    let processes = held.session.processes();
    let total = processes.output(&id, 0, 0, Duration::ZERO).await?.total;
    let part = processes.output(&id, total.saturating_sub(PART), PART, Duration::ZERO);
    Ok(Json(
        json!({"output": String::from_utf8_lossy(&part.await?.bytes)}),
    ))
}

/// Type into the user's own terminal. It does not wait for a result; read the terminal afterwards.
#[utoipa::path(post, path = "/api/terminals/user/input", operation_id = "send_user_terminal_input",
    request_body = TypeRequest, responses((status = 200, description = "It was typed", body = Object)))]
pub(super) async fn write(
    State(terminal): State<OpenTerminal>,
    caller: Caller,
    body: Bytes,
) -> Result<Json<Value>, Problem> {
    let asked: TypeRequest = json(&body)?;
    let (held, id) = of_user(&terminal, &caller)?;
    held.session
        .processes()
        .input(&id, asked.input.as_bytes(), false)
        .await?;
    Ok(Json(json!({"status": "ok"})))
}

/// Finds the terminal that the user opened last and is looking at.
fn of_user(terminal: &OpenTerminal, caller: &Caller) -> Result<(HeldChat, String), Problem> {
    let none = || Problem::missing("the user has no terminal open; use run_command instead");
    let held = terminal.existing(caller).ok_or_else(none)?;
    let id = held.kept.shown().ok_or_else(none)?;
    Ok((held, id))
}

pub(super) fn find(
    terminal: &OpenTerminal,
    caller: &Caller,
    id: &str,
) -> Result<(HeldChat, ProcessReport), Problem> {
    let unknown = || Problem::missing(format!("there is no terminal `{id}`"));
    let held = terminal.existing(caller).ok_or_else(unknown)?;
    let all = held.session.processes().list().into_iter();
    let found = all.filter(is_live).find(|it| it.id == id).ok_or_else(unknown)?;
    Ok((held, found))
}

fn is_live(report: &ProcessReport) -> bool {
    report.terminal && report.state == ProcessState::Running
}

/// Returns the id of the terminal that a WebSocket is for: its key comes later.
pub(crate) fn named(parts: &Parts) -> Option<String> {
    let (_, id) = parts.uri.path().split_once("/api/terminals/")?;
    Some(id.to_owned())
}

/// Returns the id of a terminal as clients know it: it names this server if there may be others.
fn shown(terminal: &OpenTerminal, id: &str) -> String {
    match &terminal.host.mark {
        Some(mark) => format!("{mark}.{id}"),
        None => id.to_owned(),
    }
}

/// Returns the id of a terminal in its sandbox.
fn inside(id: &str) -> &str {
    id.split_once('.').map_or(id, |(_, id)| id)
}

fn about(terminal: &OpenTerminal, report: &ProcessReport) -> Value {
    let created = i64::try_from(report.started_unix_ms)
        .ok()
        .and_then(DateTime::from_timestamp_millis);
    let created = created.map(|time| time.to_rfc3339_opts(SecondsFormat::Millis, true));
    // Its number in the sandbox is not known here.
    json!({"id": shown(terminal, &report.id), "created_at": created, "pid": null})
}
