//! `GET /v1/sessions/{id}/processes/{process}/terminal`: the terminal of a process as a WebSocket.
//!
//! Binary messages are bytes of the terminal, in both directions; text messages are JSON. One half
//! of a connection sends what the process writes, in parts; the other passes on what the client
//! sends. The sandbox keeps output, so a client that does not read costs one part.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Path, Query, State};
use axum::response::Response;
use cellblock_agent::wire::{ApiError, ErrorKind};
use cellblock_interpreter::Error;
use cellblock_interpreter::session::processes::{
    MAX_INPUT, MAX_TERMINAL, MAX_WAIT, ProcessError, ProcessReport, Processes,
};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use serde::Deserialize;
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::processes::TerminalRequest;
use crate::problem::Problem;
use crate::state::sessions::HostedSession;
use crate::state::{Caller, Gateway};

/// Maximum number of bytes in one message.
const PART: u64 = 64 * 1024;
/// Maximum time without a message; then the client gets a ping.
const QUIET: Duration = Duration::from_secs(20);
/// Pause after an answer without output, which comes early if too many requests wait.
const PAUSE: Duration = Duration::from_millis(20);
/// Maximum time to send the end of a connection.
const CLOSING: Duration = Duration::from_secs(1);

/// Offset at which to begin.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct TerminalQuery {
    /// Offset of the first byte of output; by default 0.
    offset: u64,
}

/// A text message of a client.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    resize: TerminalRequest,
}

/// Reason that a connection is closed.
type CloseReason = CloseFrame;

struct TerminalConnection {
    gateway: Gateway,
    held: Arc<HostedSession>,
    process: String,
}

/// Opens the terminal of a process as a WebSocket.
///
/// Binary messages are bytes of the terminal, in both directions. A text message `{"resize":
/// {"rows": 24, "columns": 80}}` changes its size. At the end of the process, the client gets a
/// text message `{"end": {"state", "exit_code", "signal"}}`, and the connection is closed with code
/// 1000.
#[utoipa::path(
    get, operation_id = "open_process_terminal", path = "/v1/sessions/{id}/processes/{process}/terminal",
    tag = "sessions",
    params(("id" = String, Path), ("process" = String, Path), TerminalQuery),
    responses(
        (status = 101, description = "The connection is a WebSocket"),
        (status = 400, description = "The process has no terminal, or the request opens no WebSocket",
            body = crate::openapi::Error),
        (status = 404, description = "There is no such session or process", body = crate::openapi::Error),
    )
)]
pub(crate) async fn open(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path((id, process)): Path<(String, String)>,
    Query(query): Query<TerminalQuery>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    let report = held.session.processes().wait(&process, Duration::ZERO).await?;
    if !report.terminal {
        return Err(Error::from(ProcessError::NoTerminal { id: process }).into());
    }
    let upgrade = upgrade.map_err(|rejection| ApiError {
        kind: ErrorKind::InvalidRequestError,
        code: Some("websocket_expected".to_owned()),
        message: format!(
            "a terminal opens as a WebSocket: {}; `output` and `input` work without one",
            rejection.body_text()
        ),
        param: None,
    })?;
    let tasks = gateway.tasks.clone();
    let connection = TerminalConnection {
        gateway,
        held,
        process,
    };
    Ok(upgrade
        .max_message_size(MAX_INPUT)
        .max_frame_size(MAX_INPUT)
        .on_upgrade(move |socket| tasks.track_future(connection.serve(socket, query.offset))))
}

impl TerminalConnection {
    async fn serve(self, socket: WebSocket, offset: u64) {
        let (mut sender, mut receiver) = socket.split();
        let closing = tokio::select! {
            closing = self.show(&mut sender, offset) => closing,
            closing = self.listen(&mut receiver) => closing,
            () = self.gateway.stopping.cancelled() => {
                Some(because(close_code::AWAY, "the gateway is stopping"))
            }
        };
        if let Some(closing) = closing {
            let _ = timeout(CLOSING, sender.send(Message::Close(Some(closing)))).await;
        }
    }

    fn processes(&self) -> Processes<'_> {
        self.held.session.processes()
    }

    /// Sends what the process writes. Returns `None` if nobody is left to hear the end.
    async fn show(&self, to: &mut SplitSink<WebSocket, Message>, mut offset: u64) -> Option<CloseReason> {
        loop {
            let part = self.processes().output(&self.process, offset, PART, QUIET);
            let part = match part.await {
                Ok(part) => part,
                Err(error) => return Some(failed(&error)),
            };
            offset = part.next;
            let is_empty = part.bytes.is_empty();
            if part.eof {
                if !is_empty {
                    self.send(to, Message::Binary(part.bytes.into())).await?;
                }
                return match self.processes().wait(&self.process, MAX_WAIT).await {
                    Ok(report) => {
                        self.send(to, Message::Text(end(&report).into())).await?;
                        Some(because(close_code::NORMAL, report.state_in_words()))
                    }
                    Err(error) => Some(failed(&error)),
                };
            }
            if is_empty {
                self.send(to, Message::Ping(Bytes::new())).await?;
                sleep(PAUSE).await;
            } else {
                self.send(to, Message::Binary(part.bytes.into())).await?;
            }
        }
    }

    /// Passes on what the client sends.
    async fn listen(&self, from: &mut SplitStream<WebSocket>) -> Option<CloseReason> {
        while let Some(Ok(message)) = from.next().await {
            let done = match message {
                Message::Binary(bytes) => self.processes().input(&self.process, &bytes, false).await,
                Message::Text(text) => match serde_json::from_str::<Request>(&text) {
                    Ok(Request { resize }) => self.processes().resize(&self.process, resize.into()).await,
                    Err(_) => return Some(because(close_code::INVALID, expected())),
                },
                Message::Ping(_) | Message::Pong(_) => Ok(()),
                Message::Close(_) => return None,
            };
            match done {
                // It has ended, which the other half tells.
                Ok(())
                | Err(Error::Process(ProcessError::Closed { .. } | ProcessError::NoTerminal { .. })) => {}
                Err(Error::Argument { .. }) => return Some(because(close_code::INVALID, expected())),
                Err(error) => return Some(failed(&error)),
            }
        }
        None
    }

    /// Sends a message, unless the client does not read for too long.
    async fn send(&self, to: &mut SplitSink<WebSocket, Message>, message: Message) -> Option<()> {
        let patience = self.gateway.options.responses.stall_timeout;
        timeout(patience, to.send(message)).await.ok()?.ok()
    }
}

/// The last text message.
fn end(report: &ProcessReport) -> String {
    let end = json!({"state": report.state, "exit_code": report.exit_code, "signal": report.signal});
    json!({ "end": end }).to_string()
}

fn expected() -> String {
    format!("expected {{\"resize\": {{\"rows\", \"columns\"}}}} with numbers from 1 to {MAX_TERMINAL}")
}

fn failed(error: &Error) -> CloseReason {
    match error {
        Error::Process(ProcessError::Full { .. }) => {
            because(close_code::POLICY, "the process does not read its input")
        }
        Error::Process(_) => because(close_code::AWAY, "the process has ended with its sandbox"),
        _ => {
            tracing::warn!(error = error as &dyn std::error::Error, "a terminal failed");
            because(close_code::ERROR, "the sandbox failed")
        }
    }
}

fn because(code: u16, reason: impl AsRef<str>) -> CloseReason {
    CloseFrame {
        code,
        reason: reason.as_ref().into(),
    }
}
