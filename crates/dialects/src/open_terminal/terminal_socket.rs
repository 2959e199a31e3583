//! A person's connection to a shell.
//!
//! A WebSocket is open without a header that names a key: its first message is `{"type": "auth",
//! "token"}`. After it, binary messages are bytes of the terminal in both directions, and a text
//! message `{"type": "resize", "cols", "rows"}` changes its size. The shell ends with its
//! connection.

use std::net::SocketAddr;
use std::time::Duration;

use axum::extract::ws::{WebSocket, close_code};
use axum::http::HeaderMap;
use cellblock_interpreter::Error;
use cellblock_interpreter::hosting::Owner;
use cellblock_interpreter::session::processes::terminal::{
    TerminalCodec, TerminalFrame, TerminalInput, close, closing, pump,
};
use cellblock_interpreter::session::processes::{ProcessReader, ProcessReport, ProcessState, TerminalSize};
use futures_util::{Stream, StreamExt as _};
use serde::Deserialize;
use tokio::time::timeout;

use super::chat::{Caller, HeldChat, OpenTerminal};
use super::terminals::find;
use crate::terminal::{STALL, framed};

/// Maximum wait for the first message.
const FIRST: Duration = Duration::from_secs(10);
/// Code of the end of a connection whose key is not valid.
const UNAUTHORIZED: u16 = 4001;

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

/// Messages of the protocol.
struct ShellCodec;

impl TerminalCodec for ShellCodec {
    fn text(&self, text: &str) -> TerminalInput {
        match serde_json::from_str(text) {
            Ok(Resize { cols, rows }) => TerminalInput::Resize(TerminalSize { rows, columns: cols }),
            Err(_) => TerminalInput::Nothing,
        }
    }

    fn end(&self, ended: Result<ProcessReport, Error>) -> Vec<TerminalFrame> {
        match ended {
            Ok(report) if report.state != ProcessState::Lost => {
                closing(close_code::NORMAL, "the shell has ended")
            }
            Ok(_) | Err(Error::Process(_)) => closing(close_code::AWAY, "the shell has ended"),
            Err(_) => closing(close_code::ERROR, "the sandbox failed"),
        }
    }
}

/// Serves a connection, from its first message to its end.
pub(super) async fn serve(
    terminal: &OpenTerminal,
    id: &str,
    peer: SocketAddr,
    headers: &HeaderMap,
    socket: WebSocket,
) {
    let mut socket = framed(socket);
    let end = match admit(terminal, id, peer, headers, &mut socket).await {
        Err(refused) => refused,
        Ok(held) => {
            let owner = Owner::new(held.owner.clone());
            let reader = ProcessReader::new(&held.session, id, 0);
            let end = tokio::select! {
                end = pump(&ShellCodec, reader, Vec::new(), STALL, &mut socket) => end,
                () = terminal.host.stopping.cancelled() => {
                    closing(close_code::AWAY, "the server is stopping")
                }
                // The server does not see whose key the first message had.
                () = terminal.host.revoked(&owner) => {
                    closing(UNAUTHORIZED, "the API key was revoked or has expired")
                }
            };
            held.kept.hide(id);
            held.session.processes().kill(id).await;
            end
        }
    };
    close(&mut socket, end, STALL).await;
}

/// Reads the first message, and finds the terminal of its sender.
async fn admit(
    terminal: &OpenTerminal,
    id: &str,
    peer: SocketAddr,
    headers: &HeaderMap,
    from: &mut (impl Stream<Item = TerminalFrame> + Unpin),
) -> Result<HeldChat, Vec<TerminalFrame>> {
    let unauthorized = |reason: &str| closing(UNAUTHORIZED, reason);
    let Ok(Some(TerminalFrame::Text(text))) = timeout(FIRST, from.next()).await else {
        return Err(unauthorized("no first message with a token came in time"));
    };
    let auth = serde_json::from_str::<Auth>(&text)
        .ok()
        .filter(|auth| auth.kind == "auth")
        .ok_or_else(|| unauthorized("the first message is not `{\"type\": \"auth\", \"token\"}`"))?;
    let secret = Some(auth.token.trim()).filter(|token| !token.is_empty());
    let owner = terminal.host.owner(secret, "/api/terminals", Some(peer)).await;
    let owner = owner.map_err(|_| unauthorized("the API key is not valid"))?;
    let caller = Caller::new(owner, headers, auth.chat_id.as_deref());
    let missing = |_| closing(4004, "there is no such terminal");
    let (held, _) = find(terminal, &caller.map_err(missing)?, id).map_err(missing)?;
    if !held.kept.show(id) {
        return Err(closing(4009, "the terminal is already connected"));
    }
    Ok(held)
}
