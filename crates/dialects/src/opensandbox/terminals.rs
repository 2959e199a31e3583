//! `/pty`: shells of a person, which outlive their connections.
//!
//! ```text
//! POST /pty ──> an id; the shell starts with its first connection
//! WebSocket /pty/{id}/ws?since=&pty=0&takeover=1
//!    client ── binary 0, bytes ─────────────────────> standard input
//!    client <─ binary 1 or 2, bytes ───────────────── stdout or stderr, which are one in a terminal
//!    client <─ binary 3, offset to go on from, bytes ─ what was written before, from `since`
//!    both ──── text, JSON ─────────────────────────── resize, signal, ping; connected, exit, error, pong
//! ```

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Path, Query, State as Given};
use axum::http::StatusCode;
use axum::response::Response;
use cellblock_interpreter::Error;
use cellblock_interpreter::hosting::Owner;
use cellblock_interpreter::json_error;
use cellblock_interpreter::mint;
use cellblock_interpreter::session::processes::{
    MAX_INPUT, MAX_OUTPUT, ProcessOrder, ProcessState, ProcessStream, TerminalSize,
};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{OwnedMutexGuard, mpsc};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::access::ExecdSandbox;
use super::command::exit_code;
use super::error::Problem;
use super::files::place;
use super::sandbox::{HeldSandbox, State, lock};
use crate::bounded::{BoundedDescription, BoundedName};
use crate::process::{ProcessReader, kill};

/// Maximum number of terminals of a sandbox, those whose shells have ended among them.
const MAX_TERMINALS: usize = 64;
/// Size of a terminal until the client says otherwise.
const SIZE: TerminalSize = TerminalSize {
    rows: 24,
    columns: 80,
};
/// Maximum time without output; then the client gets a ping.
const QUIET: Duration = Duration::from_secs(20);
/// Maximum time for a client to say something or to answer a ping.
const SILENT: Duration = Duration::from_mins(1);
/// Maximum time for a client to take a message.
const STALL: Duration = Duration::from_secs(30);
/// Maximum time for a connection that is taken over to end.
const TAKEOVER: Duration = Duration::from_secs(5);
/// Code of the end of a connection that another one has taken over.
const TAKEN_OVER: u16 = 4001;

/// First bytes of binary messages.
const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const REPLAY: u8 = 3;

/// The terminals of a sandbox by their ids.
#[derive(Debug, Default)]
pub(super) struct Terminals(Mutex<HashMap<String, Arc<Terminal>>>);

/// A terminal.
#[derive(Debug, Default)]
struct Terminal {
    request: TerminalRequest,
    shell: Mutex<Option<Shell>>,
    /// Locked by the connection that has it.
    seat: Arc<tokio::sync::Mutex<()>>,
    /// Ends the connection that has it.
    eviction: Mutex<CancellationToken>,
}

/// The process of a terminal.
#[derive(Clone, Debug)]
struct Shell {
    id: String,
    /// Whether its streams are apart, without a terminal.
    is_piped: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TerminalRequest {
    cwd: Option<BoundedName>,
    /// Command that runs instead of a shell.
    command: Option<BoundedDescription<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AttachQuery {
    /// `0` for streams that are apart.
    pty: Option<String>,
    /// Offset of the first byte of earlier output.
    since: Option<String>,
    /// `1` to end the connection that there is.
    takeover: Option<String>,
}

/// A text message of a client.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TerminalMessage {
    #[serde(rename = "type")]
    kind: String,
    data: String,
    cols: u16,
    rows: u16,
    signal: String,
}

/// End of a connection: the last text message, and the reason.
#[derive(Debug, Default)]
struct ConnectionEnd {
    last: Option<Value>,
    closing: Option<CloseFrame>,
}

pub(super) async fn create(
    ExecdSandbox { sandbox, .. }: ExecdSandbox,
    body: Bytes,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let request = if body.is_empty() {
        TerminalRequest::default()
    } else {
        serde_json::from_slice(&body)
            .map_err(|error| Problem::invalid(format!("read the body: {}", json_error::describe(&error))))?
    };
    let mut all = lock(&sandbox.kept.terminals.0);
    if all.len() >= MAX_TERMINALS {
        return Err(Problem::invalid(format!(
            "the sandbox has {MAX_TERMINALS} terminals, which is the limit; delete one"
        )));
    }
    let id = mint("");
    let terminal = Terminal {
        request,
        ..Terminal::default()
    };
    all.insert(id.clone(), Arc::new(terminal));
    Ok((StatusCode::CREATED, Json(json!({ "session_id": id }))))
}

pub(super) async fn status(
    ExecdSandbox { sandbox, .. }: ExecdSandbox,
    Path((_, id)): Path<(String, String)>,
) -> Result<Json<Value>, Problem> {
    let terminal = find(&sandbox, &id)?;
    let shell = lock(&terminal.shell).clone();
    let (mut running, mut offset) = (false, 0);
    if let Some(shell) = &shell {
        running = is_running(&sandbox, shell).await;
        let written = sandbox
            .session
            .processes()
            .output(&shell.id, 0, 0, Duration::ZERO);
        offset = written.await.map_or(0, |written| written.total);
    }
    Ok(Json(json!({
        "session_id": id,
        "running": running,
        "output_offset": offset,
        "launch_attempted": shell.is_some(),
    })))
}

/// Ends a terminal; a connection to it sees the end of the shell.
pub(super) async fn delete(
    ExecdSandbox { sandbox, .. }: ExecdSandbox,
    Path((_, id)): Path<(String, String)>,
) -> Result<(), Problem> {
    let terminal = find(&sandbox, &id)?;
    lock(&sandbox.kept.terminals.0).remove(&id);
    let shell = lock(&terminal.shell).clone();
    if let Some(shell) = shell {
        kill(sandbox.session.processes(), &shell.id).await;
    }
    Ok(())
}

/// Connects a client.
pub(super) async fn attach(
    Given(state): Given<State>,
    ExecdSandbox { sandbox, owner }: ExecdSandbox,
    Path((_, id)): Path<(String, String)>,
    query: Result<Query<AttachQuery>, QueryRejection>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let Query(asked) = query?;
    let terminal = find(&sandbox, &id)?;
    let upgrade = upgrade.map_err(|rejection| {
        Problem::invalid(format!(
            "a terminal opens as a WebSocket: {}",
            rejection.body_text()
        ))
    })?;
    let seat = Arc::clone(&terminal.seat).try_lock_owned().ok();
    if seat.is_none() && asked.takeover.as_deref() != Some("1") {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "ALREADY_CONNECTED",
            format!("another client is connected to terminal `{id}`; connect with `takeover=1` to end that"),
        ));
    }
    let upgrade = upgrade.max_message_size(MAX_INPUT).max_frame_size(MAX_INPUT);
    let tasks = state.host.tasks.clone();
    let connection = TerminalConnection {
        state,
        sandbox,
        owner,
        terminal,
        id,
    };
    Ok(upgrade.on_upgrade(move |socket| {
        tasks.track_future(async move { connection.serve(socket, seat, &asked).await })
    }))
}

fn find(sandbox: &HeldSandbox, id: &str) -> Result<Arc<Terminal>, Problem> {
    let found = lock(&sandbox.kept.terminals.0).get(id).cloned();
    found.ok_or_else(|| {
        let message = format!("terminal `{id}` does not exist; create one with `POST /pty`");
        Problem::missing("CONTEXT_NOT_FOUND", message)
    })
}

async fn is_running(sandbox: &HeldSandbox, shell: &Shell) -> bool {
    let report = sandbox.session.processes().wait(&shell.id, Duration::ZERO).await;
    report.is_ok_and(|report| report.state == ProcessState::Running)
}

/// A client's connection.
#[derive(Debug)]
struct TerminalConnection {
    state: State,
    sandbox: HeldSandbox,
    owner: Owner,
    terminal: Arc<Terminal>,
    id: String,
}

impl TerminalConnection {
    async fn serve(self, socket: WebSocket, seat: Option<OwnedMutexGuard<()>>, asked: &AttachQuery) {
        let (mut sender, receiver) = socket.split();
        let end = match self.seat(seat).await {
            Err(end) => end,
            Ok((_seat, evicted)) => {
                tokio::select! {
                    end = self.converse(&mut sender, receiver, asked) => end,
                    () = evicted.cancelled() => ConnectionEnd::because(TAKEN_OVER, "TAKEN_OVER"),
                    () = self.sandbox.closed() => ConnectionEnd::because(close_code::AWAY, "the sandbox was deleted"),
                    () = self.state.host.stopping.cancelled() => {
                        ConnectionEnd::because(close_code::AWAY, "the server is stopping")
                    }
                }
            }
        };
        // Also the answer to the client's own close, which it waits for.
        let _ = timeout(STALL, async {
            if let Some(last) = end.last {
                let _ = sender.send(Message::text(last.to_string())).await;
            }
            if let Some(closing) = end.closing {
                let _ = sender.send(Message::Close(Some(closing))).await;
            }
            let _ = sender.close().await;
        })
        .await;
    }

    /// Takes the terminal, if need be from another connection.
    async fn seat(
        &self,
        free: Option<OwnedMutexGuard<()>>,
    ) -> Result<(OwnedMutexGuard<()>, CancellationToken), ConnectionEnd> {
        let seat = if let Some(seat) = free {
            seat
        } else {
            lock(&self.terminal.eviction).cancel();
            let seat = Arc::clone(&self.terminal.seat).lock_owned();
            let late =
                |_| ConnectionEnd::error("ALREADY_CONNECTED", "the other connection did not end in time");
            timeout(TAKEOVER, seat).await.map_err(late)?
        };
        let evicted = CancellationToken::new();
        *lock(&self.terminal.eviction) = evicted.clone();
        Ok((seat, evicted))
    }

    /// Starts the shell unless it runs, and passes on both ways until one of them ends.
    async fn converse(
        &self,
        to: &mut SplitSink<WebSocket, Message>,
        from: SplitStream<WebSocket>,
        asked: &AttachQuery,
    ) -> ConnectionEnd {
        let (shell, is_new) = match self.shell(asked.pty.as_deref() == Some("0")).await {
            Ok(shell) => shell,
            Err(problem) => return ConnectionEnd::error("START_FAILED", &problem.message),
        };
        // What a new shell has written by now is no earlier output, which has its streams mixed.
        let (replayed, offset) = if is_new {
            Default::default()
        } else {
            let since = asked.since.as_deref().and_then(|since| since.parse().ok());
            match self.replay(&shell, since.unwrap_or_default()).await {
                Ok(replayed) => replayed,
                Err(error) => return failed(&error),
            }
        };
        let mode = if shell.is_piped { "pipe" } else { "pty" };
        let connected = json!({"type": "connected", "session_id": self.id, "mode": mode});
        let (answers, pending) = mpsc::channel(8);
        let reading = ProcessReader::new(&self.sandbox.session, &shell.id, offset);
        let show = async {
            if !replayed.is_empty() {
                let offset = offset.to_be_bytes();
                send(to, Message::binary([&[REPLAY][..], &offset, &replayed].concat())).await?;
            }
            send(to, Message::text(connected.to_string())).await?;
            show(reading, &shell, to, pending).await
        };
        tokio::select! {
            end = show => end.unwrap_or_default(),
            end = self.listen(&shell, from, answers) => end,
        }
    }

    /// Returns the shell that runs, or starts one; the flag says that it was started.
    async fn shell(&self, is_piped: bool) -> Result<(Shell, bool), Problem> {
        let known = lock(&self.terminal.shell).clone();
        if let Some(shell) = known
            && is_running(&self.sandbox, &shell).await
        {
            return Ok((shell, false));
        }
        let TerminalRequest { cwd, command } = self.terminal.request.clone();
        let command = command.filter(|it| !it.trim().is_empty());
        let command = match &command {
            Some(command) => vec!["bash", "-c", command.as_str()],
            None if is_piped => vec!["bash"],
            None => vec!["bash", "-i"],
        };
        let order = ProcessOrder {
            command: command.into_iter().map(str::to_owned).collect(),
            env: self.sandbox.kept.env.clone(),
            directory: cwd.filter(|it| !it.is_empty()).map(|it| place(&it)),
            stdin: true,
            terminal: (!is_piped).then_some(SIZE),
        };
        let _permit = self.state.host.cell(&self.owner).await?;
        let id = self.sandbox.session.processes().start(order).await?.id;
        let shell = Shell { id, is_piped };
        *lock(&self.terminal.shell) = Some(shell.clone());
        Ok((shell, true))
    }

    /// Returns what was written since an offset, the last bytes of it if it is much, and the offset
    /// from which to go on.
    async fn replay(&self, shell: &Shell, since: u64) -> Result<(Vec<u8>, u64), Error> {
        let processes = self.sandbox.session.processes();
        let total = processes.output(&shell.id, 0, 0, Duration::ZERO).await?.total;
        let mut offset = since.max(total.saturating_sub(MAX_OUTPUT)).min(total);
        let mut bytes = Vec::new();
        while offset < total {
            let part = processes
                .output(&shell.id, offset, total - offset, Duration::ZERO)
                .await?;
            if part.bytes.is_empty() {
                break;
            }
            offset = part.next;
            bytes.extend(part.bytes);
        }
        Ok((bytes, offset))
    }

    /// Passes on what the client sends.
    async fn listen(
        &self,
        shell: &Shell,
        mut from: SplitStream<WebSocket>,
        answers: mpsc::Sender<Value>,
    ) -> ConnectionEnd {
        loop {
            let Ok(Some(Ok(message))) = timeout(SILENT, from.next()).await else {
                return ConnectionEnd::default();
            };
            let typed = match message {
                Message::Binary(bytes) => match bytes.split_first() {
                    Some((&STDIN, typed)) => Some(typed.to_vec()),
                    _ => None,
                },
                Message::Text(text) => match serde_json::from_str::<TerminalMessage>(&text) {
                    Ok(told) if told.kind == "stdin" => Some(told.data.into_bytes()),
                    Ok(told) => {
                        if let Some(answer) = self.told(shell, &told).await {
                            // Who sends more than it reads waits.
                            let _ = answers.send(answer).await;
                        }
                        None
                    }
                    Err(_) => None,
                },
                Message::Ping(_) | Message::Pong(_) => None,
                Message::Close(_) => return ConnectionEnd::default(),
            };
            if let Some(typed) = typed {
                let sent = self
                    .sandbox
                    .session
                    .processes()
                    .input(&shell.id, &typed, false)
                    .await;
                if let Err(error) = sent {
                    return ConnectionEnd::error("STDIN_WRITE_FAILED", &error.to_string());
                }
            }
        }
    }

    /// Does what a text message asks for, and returns the answer to it if there is one.
    async fn told(&self, shell: &Shell, told: &TerminalMessage) -> Option<Value> {
        let processes = self.sandbox.session.processes();
        match told.kind.as_str() {
            "resize" => {
                let size = TerminalSize {
                    rows: told.rows,
                    columns: told.cols,
                };
                // A window that is not visible has no rows, and pipes have no size.
                let _ = processes.resize(&shell.id, size).await;
                None
            }
            "signal" => {
                if let Ok(signal) = told.signal.parse() {
                    // It may have ended.
                    let _ = processes.signal(&shell.id, signal).await;
                }
                None
            }
            "ping" => Some(json!({"type": "pong"})),
            kind => Some(error("INVALID_FRAME", &format!("unknown frame type {kind:?}"))),
        }
    }
}

/// Sends what the shell writes and what the client is answered, until the shell ends. Returns
/// `None` if nobody is left to read it.
async fn show(
    mut reading: ProcessReader,
    shell: &Shell,
    to: &mut SplitSink<WebSocket, Message>,
    mut answers: mpsc::Receiver<Value>,
) -> Option<ConnectionEnd> {
    loop {
        let message = tokio::select! {
            part = reading.next() => match part {
                Ok(Some((stream, bytes))) => {
                    let stream = match stream {
                        ProcessStream::Stderr if shell.is_piped => STDERR,
                        _ => STDOUT,
                    };
                    Message::binary([&[stream][..], &bytes].concat())
                }
                Ok(None) => break,
                Err(error) => return Some(failed(&error)),
            },
            Some(answer) = answers.recv() => Message::text(answer.to_string()),
            () = sleep(QUIET) => Message::Ping(Bytes::new()),
        };
        send(to, message).await?;
    }
    let code = match reading.end().await {
        Ok(report) => exit_code(&report),
        Err(error) => return Some(failed(&error)),
    };
    Some(ConnectionEnd {
        last: Some(json!({"type": "exit", "exit_code": code})),
        ..ConnectionEnd::because(close_code::NORMAL, "process exited")
    })
}

async fn send(to: &mut SplitSink<WebSocket, Message>, message: Message) -> Option<()> {
    timeout(STALL, to.send(message)).await.ok()?.ok()
}

impl ConnectionEnd {
    fn because(code: u16, reason: &str) -> Self {
        Self {
            last: None,
            closing: Some(CloseFrame {
                code,
                reason: reason.into(),
            }),
        }
    }

    fn error(code: &str, message: &str) -> Self {
        Self {
            last: Some(error(code, message)),
            closing: None,
        }
    }
}

fn failed(error: &Error) -> ConnectionEnd {
    tracing::warn!(error = error as &dyn std::error::Error, "a terminal failed");
    ConnectionEnd::because(close_code::ERROR, "the sandbox failed")
}

fn error(code: &str, message: &str) -> Value {
    json!({"type": "error", "code": code, "error": message})
}
