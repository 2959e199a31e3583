//! `/api/terminals`: shells of a person, and how a model looks at them.
//!
//! A WebSocket is open without a header that names a key: its first message is `{"type": "auth",
//! "token"}`. After it, binary messages are bytes of the terminal in both directions, and a text
//! message `{"type": "resize", "cols", "rows"}` changes its size. The shell ends with its
//! connection.

use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::extract::{ConnectInfo, Path, State};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::Response;
use cellblock_interpreter::Error;
use cellblock_interpreter::hosting::Owner;
use cellblock_interpreter::session::processes::{
    MAX_INPUT, ProcessOrder, ProcessReport, ProcessSignal, ProcessState, TerminalSize,
};
use chrono::{DateTime, SecondsFormat};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::arguments::json;
use super::chat::{Caller, HeldChat, OpenTerminal};
use super::problem::Problem;

/// Size of a terminal until the client says otherwise.
const SIZE: TerminalSize = TerminalSize {
    rows: 24,
    columns: 80,
};
/// Maximum wait for the first message.
const FIRST: Duration = Duration::from_secs(10);
/// Maximum number of bytes in one message.
const PART: u64 = 64 * 1024;
/// Maximum time without a message; then the client gets a ping.
const QUIET: Duration = Duration::from_secs(20);
/// Pause after an answer without output, which comes early if too many requests wait.
const PAUSE: Duration = Duration::from_millis(20);
/// Maximum time for a client to take a message.
const STALL: Duration = Duration::from_secs(30);

/// The first message.
#[derive(Debug, Deserialize)]
struct Auth {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    token: String,
    chat_id: Option<String>,
}

/// A later text message.
#[derive(Debug, Deserialize)]
struct Resize {
    cols: u16,
    rows: u16,
}

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
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
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
    Ok(axum::response::IntoResponse::into_response(Json(about(
        &terminal, &report,
    ))))
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

fn find(terminal: &OpenTerminal, caller: &Caller, id: &str) -> Result<(HeldChat, ProcessReport), Problem> {
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

/// Serves a connection, from its first message to its end.
async fn serve(
    terminal: &OpenTerminal,
    id: &str,
    peer: std::net::SocketAddr,
    headers: &HeaderMap,
    socket: WebSocket,
) {
    let (mut sender, mut receiver) = socket.split();
    let closing = match admit(terminal, id, peer, headers, &mut receiver).await {
        Err(refused) => Some(refused),
        Ok(held) => {
            let owner = Owner::new(held.owner.clone());
            let closing = tokio::select! {
                closing = show(&held, id, &mut sender) => closing,
                closing = listen(&held, id, &mut receiver) => closing,
                () = terminal.host.stopping.cancelled() => Some(because(1001, "the server is stopping")),
                // The server does not see whose key the first message had.
                () = terminal.host.revoked(&owner) => {
                    Some(because(4001, "the API key was revoked or has expired"))
                }
            };
            held.kept.hide(id);
            // It may have ended by itself.
            let _ = held.session.processes().signal(id, ProcessSignal::KILL).await;
            closing
        }
    };
    // Also the answer to the client's own close, which it waits for.
    let _ = timeout(STALL, async {
        if let Some(closing) = closing {
            let _ = sender.send(Message::Close(Some(closing))).await;
        }
        let _ = sender.close().await;
    })
    .await;
}

/// Reads the first message, and finds the terminal of who sends it.
async fn admit(
    terminal: &OpenTerminal,
    id: &str,
    peer: std::net::SocketAddr,
    headers: &HeaderMap,
    from: &mut SplitStream<WebSocket>,
) -> Result<HeldChat, CloseFrame> {
    let first = timeout(FIRST, from.next()).await;
    let Ok(Some(Ok(Message::Text(text)))) = first else {
        return Err(because(4001, "no first message with a token came in time"));
    };
    let auth = serde_json::from_str::<Auth>(&text)
        .ok()
        .filter(|auth| auth.kind == "auth");
    let auth =
        auth.ok_or_else(|| because(4001, "the first message is not `{\"type\": \"auth\", \"token\"}`"))?;
    let secret = Some(auth.token.trim()).filter(|token| !token.is_empty());
    let owner = terminal.host.owner(secret, "/api/terminals", Some(peer)).await;
    let owner = owner.map_err(|_| because(4001, "the API key is not valid"))?;
    let caller = Caller::new(owner, headers, auth.chat_id.as_deref());
    let missing = |_| because(4004, "there is no such terminal");
    let (held, _) = find(terminal, &caller.map_err(missing)?, id).map_err(missing)?;
    if !held.kept.show(id) {
        return Err(because(4009, "the terminal is already connected"));
    }
    Ok(held)
}

/// Sends what the shell writes. Returns `None` if nobody is left to hear the end.
async fn show(held: &HeldChat, id: &str, to: &mut SplitSink<WebSocket, Message>) -> Option<CloseFrame> {
    let mut offset = 0;
    loop {
        let part = held.session.processes().output(id, offset, PART, QUIET).await;
        let part = match part {
            Ok(part) => part,
            Err(error) => return Some(failed(&error)),
        };
        offset = part.next;
        let is_empty = part.bytes.is_empty();
        let message = if is_empty {
            Message::Ping(Bytes::new())
        } else {
            Message::Binary(part.bytes.into())
        };
        timeout(STALL, to.send(message)).await.ok()?.ok()?;
        if part.eof {
            return Some(because(1000, "the shell has ended"));
        }
        if is_empty {
            sleep(PAUSE).await;
        }
    }
}

/// Passes on what the client sends.
async fn listen(held: &HeldChat, id: &str, from: &mut SplitStream<WebSocket>) -> Option<CloseFrame> {
    let processes = held.session.processes();
    while let Some(Ok(message)) = from.next().await {
        let done = match message {
            Message::Binary(bytes) => processes.input(id, &bytes, false).await,
            Message::Text(text) => match serde_json::from_str::<Resize>(&text) {
                Ok(Resize { cols, rows }) => {
                    let size = TerminalSize { rows, columns: cols };
                    match processes.resize(id, size).await {
                        // A window that is not visible has no rows.
                        Err(Error::Argument { .. }) => Ok(()),
                        done => done,
                    }
                }
                Err(_) => Ok(()),
            },
            Message::Ping(_) | Message::Pong(_) => Ok(()),
            Message::Close(_) => return None,
        };
        if let Err(error) = done {
            return Some(failed(&error));
        }
    }
    None
}

fn failed(error: &Error) -> CloseFrame {
    if matches!(error, Error::Process(_)) {
        return because(1001, "the shell has ended");
    }
    tracing::warn!(error = error as &dyn std::error::Error, "a terminal failed");
    because(1011, "the sandbox failed")
}

fn because(code: u16, reason: &str) -> CloseFrame {
    CloseFrame {
        code,
        reason: reason.into(),
    }
}
