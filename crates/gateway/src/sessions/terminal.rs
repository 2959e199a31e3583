//! `GET /v1/sessions/{id}/processes/{process}/terminal`: the terminal of a process as a WebSocket.
//!
//! Binary messages are bytes of the terminal, in both directions; text messages are JSON.

use std::time::Duration;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Path, Query, State};
use axum::response::Response;
use bytes::Bytes;
use cellblock_agent::wire::{ApiError, ErrorKind};
use cellblock_interpreter::Error;
use cellblock_interpreter::session::processes::terminal::{
    TerminalCodec, TerminalFrame, TerminalInput, close, closing, pump,
};
use cellblock_interpreter::session::processes::{
    MAX_INPUT, MAX_TERMINAL, ProcessError, ProcessReader, ProcessReport, ProcessState, TerminalSize,
};
use futures_util::{Sink, SinkExt as _, Stream, StreamExt as _, future};
use serde::Deserialize;
use serde_json::json;

use super::processes::TerminalRequest;
use crate::problem::Problem;
use crate::state::sessions::HostedSession;
use crate::state::{Caller, Gateway};

/// Maximum time to send the end of a connection when the gateway stops.
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
    let upgrade = upgrade.max_message_size(MAX_INPUT).max_frame_size(MAX_INPUT);
    let tasks = gateway.tasks.clone();
    Ok(upgrade.on_upgrade(move |socket| {
        tasks.track_future(async move { serve(&gateway, &held, &process, query.offset, socket).await })
    }))
}

async fn serve(gateway: &Gateway, held: &HostedSession, process: &str, offset: u64, socket: WebSocket) {
    let mut socket = framed(socket);
    let stall = gateway.options.responses.stall_timeout;
    let reader = ProcessReader::new(&held.session, process, offset);
    let (end, limit) = tokio::select! {
        end = pump(&ProcessCodec, reader, Vec::new(), stall, &mut socket) => (end, stall),
        () = gateway.stopping.cancelled() => (closing(close_code::AWAY, "the gateway is stopping"), CLOSING),
    };
    close(&mut socket, end, limit).await;
}

/// Messages of the route.
struct ProcessCodec;

impl TerminalCodec for ProcessCodec {
    fn text(&self, text: &str) -> TerminalInput {
        let valid = |count| (1..=MAX_TERMINAL).contains(&count);
        match serde_json::from_str(text).map(|Request { resize }| TerminalSize::from(resize)) {
            Ok(size) if valid(size.rows) && valid(size.columns) => TerminalInput::Resize(size),
            _ => {
                let range = format!("numbers from 1 to {MAX_TERMINAL}");
                let expected = format!("expected {{\"resize\": {{\"rows\", \"columns\"}}}} with {range}");
                TerminalInput::End(closing(close_code::INVALID, expected))
            }
        }
    }

    fn end(&self, ended: Result<ProcessReport, Error>) -> Vec<TerminalFrame> {
        match ended {
            Ok(report) if report.state != ProcessState::Lost => {
                let mut end = closing(close_code::NORMAL, report.state_in_words());
                let last = json!({"end": {"state": report.state, "exit_code": report.exit_code,
                    "signal": report.signal}});
                end.insert(0, TerminalFrame::Text(last.to_string()));
                end
            }
            Err(Error::Process(ProcessError::Full { .. })) => {
                closing(close_code::POLICY, "the process does not read its input")
            }
            Ok(_) | Err(Error::Process(_)) => {
                closing(close_code::AWAY, "the process has ended with its sandbox")
            }
            Err(_) => closing(close_code::ERROR, "the sandbox failed"),
        }
    }
}

/// Returns a WebSocket with the messages of a terminal.
fn framed(
    socket: WebSocket,
) -> impl Stream<Item = TerminalFrame> + Sink<TerminalFrame, Error = axum::Error> + Unpin {
    let read = socket.map(|message| match message {
        Ok(Message::Binary(bytes)) => TerminalFrame::Binary(bytes),
        Ok(Message::Text(text)) => TerminalFrame::Text(text.to_string()),
        Ok(Message::Ping(_) | Message::Pong(_)) => TerminalFrame::Ping,
        Ok(Message::Close(_)) | Err(_) => TerminalFrame::Close(None),
    });
    read.with(|frame| {
        future::ok(match frame {
            TerminalFrame::Binary(bytes) => Message::Binary(bytes),
            TerminalFrame::Text(text) => Message::text(text),
            TerminalFrame::Ping => Message::Ping(Bytes::new()),
            TerminalFrame::Close(end) => Message::Close(end.map(|(code, reason)| CloseFrame {
                code,
                reason: reason.into(),
            })),
        })
    })
}
