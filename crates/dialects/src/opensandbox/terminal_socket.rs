//! A client's connection to a terminal.
//!
//! ```text
//! POST /pty ──> an id; the shell starts with its first connection
//! WebSocket /pty/{id}/ws?since=&pty=0&takeover=1
//!    client ── binary 0, bytes ─────────────────────> standard input
//!    client <─ binary 1 or 2, bytes ───────────────── stdout or stderr, which are one in a terminal
//!    client <─ binary 3, offset to go on from, bytes ─ what was written before, from `since`
//!    both ──── text, JSON ─────────────────────────── resize, signal, ping; connected, exit, error, pong
//! ```

use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::QueryRejection;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{WebSocketUpgrade, close_code};
use axum::extract::{Path, Query, State as Given};
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use cellblock_interpreter::Error;
use cellblock_interpreter::session::processes::terminal::{
    TerminalCodec, TerminalFrame, TerminalInput, close, closing, pump,
};
use cellblock_interpreter::session::processes::{
    MAX_INPUT, ProcessError, ProcessReader, ProcessReport, ProcessStream, TerminalSize,
};
use futures_util::{Sink, Stream};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::OwnedMutexGuard;
use tokio::time::timeout;

use super::access::ExecdSandbox;
use super::command::exit_code;
use super::error::Problem;
use super::sandbox::State;
use super::terminals::{Shell, Terminal, find};
use crate::terminal::{STALL, framed};

/// Maximum time for a connection that is taken over to end.
const TAKEOVER: Duration = Duration::from_secs(5);
/// Code of the end of a connection that another one has taken over.
const TAKEN_OVER: u16 = 4001;

/// First bytes of binary messages.
const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const REPLAY: u8 = 3;

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

/// Connects a client to a terminal.
pub(super) async fn attach(
    Given(state): Given<State>,
    opened: ExecdSandbox,
    Path((_, id)): Path<(String, String)>,
    query: Result<Query<AttachQuery>, QueryRejection>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let Query(asked) = query?;
    let terminal = find(&opened.sandbox, &id)?;
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
    Ok(upgrade.on_upgrade(move |socket| {
        tasks.track_future(async move {
            let mut socket = framed(socket);
            let end = serve(&mut socket, &state, &opened, &terminal, &id, seat, &asked).await;
            close(&mut socket, end, STALL).await;
        })
    }))
}

impl TerminalCodec for Shell {
    const SILENCE: Duration = Duration::from_mins(1);

    fn output(&self, stream: ProcessStream, bytes: Vec<u8>) -> Vec<u8> {
        let is_stderr = self.is_piped && stream == ProcessStream::Stderr;
        [&[if is_stderr { STDERR } else { STDOUT }][..], &bytes].concat()
    }

    fn binary(&self, mut bytes: Bytes) -> TerminalInput {
        if bytes.first() != Some(&STDIN) {
            return TerminalInput::Nothing;
        }
        TerminalInput::Bytes(bytes.split_off(1))
    }

    fn text(&self, text: &str) -> TerminalInput {
        let Ok(message) = serde_json::from_str::<TerminalMessage>(text) else {
            return TerminalInput::Nothing;
        };
        match message.kind.as_str() {
            "stdin" => TerminalInput::Bytes(message.data.into()),
            "resize" => TerminalInput::Resize(TerminalSize {
                rows: message.rows,
                columns: message.cols,
            }),
            "signal" => match message.signal.parse() {
                Ok(signal) => TerminalInput::Signal(signal),
                Err(_) => TerminalInput::Nothing,
            },
            "ping" => TerminalInput::Answer(json!({"type": "pong"}).to_string()),
            kind => TerminalInput::Answer(error("INVALID_FRAME", &format!("unknown frame type {kind:?}"))),
        }
    }

    fn end(&self, ended: Result<ProcessReport, Error>) -> Vec<TerminalFrame> {
        let Ok(report) = ended else {
            return closing(close_code::ERROR, "the sandbox failed");
        };
        let exit = json!({"type": "exit", "exit_code": exit_code(&report)});
        let mut end = closing(close_code::NORMAL, "process exited");
        end.insert(0, TerminalFrame::Text(exit.to_string()));
        end
    }

    fn unwritten(&self, error: Error) -> Option<Vec<TerminalFrame>> {
        // The rest of the output and the exit code are still to come.
        let is_closed = matches!(error, Error::Process(ProcessError::Closed { .. }));
        (!is_closed).then(|| refused("STDIN_WRITE_FAILED", &error.to_string()))
    }
}

/// Takes the terminal, if need be from another connection, and passes on both ways until one of them
/// ends.
async fn serve(
    socket: &mut (impl Stream<Item = TerminalFrame> + Sink<TerminalFrame> + Unpin),
    state: &State,
    opened: &ExecdSandbox,
    terminal: &Terminal,
    id: &str,
    seat: Option<OwnedMutexGuard<()>>,
    asked: &AttachQuery,
) -> Vec<TerminalFrame> {
    let _seat = if let Some(seat) = seat {
        seat
    } else {
        terminal.eviction.notify_waiters();
        let free = timeout(TAKEOVER, Arc::clone(&terminal.seat).lock_owned());
        let Ok(seat) = free.await else {
            return refused("ALREADY_CONNECTED", "the other connection did not end in time");
        };
        seat
    };
    let converse = async {
        match begin(state, opened, terminal, id, asked).await {
            Ok((shell, reader, greeting)) => pump(&shell, reader, greeting, STALL, socket).await,
            Err(end) => end,
        }
    };
    tokio::select! {
        end = converse => end,
        () = terminal.eviction.notified() => closing(TAKEN_OVER, "TAKEN_OVER"),
        () = opened.sandbox.closed() => closing(close_code::AWAY, "the sandbox was deleted"),
        () = state.host.stopping.cancelled() => closing(close_code::AWAY, "the server is stopping"),
    }
}

/// Starts the shell unless it runs, and returns it with its output and the first messages.
async fn begin(
    state: &State,
    opened: &ExecdSandbox,
    terminal: &Terminal,
    id: &str,
    asked: &AttachQuery,
) -> Result<(Shell, ProcessReader, Vec<TerminalFrame>), Vec<TerminalFrame>> {
    let sandbox = &opened.sandbox;
    let shell = terminal
        .shell(state, opened, asked.pty.as_deref() == Some("0"))
        .await;
    let (shell, is_new) = shell.map_err(|problem| refused("START_FAILED", &problem.message))?;
    let (mut greeting, mut offset) = (Vec::new(), 0);
    // What a new shell has written by now is no earlier output, which has its streams mixed.
    if !is_new {
        let since = asked.since.as_deref().and_then(|since| since.parse().ok());
        let replayed = shell.replay(sandbox, since.unwrap_or_default()).await;
        let (bytes, next) = replayed.map_err(|error| shell.end(Err(error)))?;
        offset = next;
        if !bytes.is_empty() {
            let replayed = [&[REPLAY][..], &offset.to_be_bytes(), &bytes].concat();
            greeting.push(TerminalFrame::Binary(replayed.into()));
        }
    }
    let mode = if shell.is_piped { "pipe" } else { "pty" };
    let connected = json!({"type": "connected", "session_id": id, "mode": mode});
    greeting.push(TerminalFrame::Text(connected.to_string()));
    let reader = ProcessReader::new(&sandbox.session, &shell.id, offset);
    Ok((shell, reader, greeting))
}

/// Returns an error as the last message, without a reason of the end.
fn refused(code: &str, message: &str) -> Vec<TerminalFrame> {
    vec![TerminalFrame::Text(error(code, message))]
}

fn error(code: &str, message: &str) -> String {
    json!({"type": "error", "code": code, "error": message}).to_string()
}
