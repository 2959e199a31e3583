//! One client: it is who it has to be, it asks, and its question is accepted or refused.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use cellblock_interpreter::hosting::Resident;
use rustix::process::geteuid;
use serde::Serialize;
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::Service;
use crate::error::{Error, Result};
use crate::session::wire::{self, GENERATION, HostAnswer, HostCommand, HostFrame, HostRequest};
use crate::session_error::WireError;

/// Maximum time for a client to send its request, and to read the answer.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) async fn serve<S: Service>(
    service: Arc<Resident<S>>,
    mut stream: UnixStream,
    stops: mpsc::Sender<UnixStream>,
) {
    match stream.peer_cred() {
        Ok(peer) if peer.uid() == geteuid().as_raw() => {}
        // Nobody else can reach the socket, so this is no client that has to be told.
        _ => return,
    }
    let ask = match timeout(PATIENCE, question(&mut stream)).await {
        Ok(Ok(Some(ask))) => ask,
        Ok(Ok(None)) | Err(_) => return,
        Ok(Err(refused)) => {
            let _ = tell(&mut stream, &failure(&refused)).await;
            return;
        }
    };
    if tell(&mut stream, &HostAnswer::Accepted).await.is_err() {
        return;
    }
    if ask == HostCommand::Stop {
        // Answered by whoever ends the host.
        let _ = stops.send(stream).await;
        return;
    }
    if let Err(error) = S::answer(service, stream, ask).await {
        tracing::debug!(error = &error as &dyn std::error::Error, "a client has left");
    }
}

/// Reads the client's request; `None` if it left without one.
async fn question(stream: &mut UnixStream) -> Result<Option<HostCommand>> {
    let wrong = |error: io::Error| Error::Refused(format!("read the question: {error}"));
    let message = match wire::receive(stream).await.map_err(wrong)? {
        None => return Ok(None),
        Some(HostFrame::Message(message)) => message,
        Some(_) => return Err(wrong(io::ErrorKind::InvalidData.into())),
    };
    let envelope: HostRequest = wire::read(&message).map_err(wrong)?;
    if envelope.generation != GENERATION {
        return Err(Error::Refused(format!(
            "this host was started by another version of cellblock, {}; stop it and start another",
            env!("CARGO_PKG_VERSION")
        )));
    }
    let ask = serde_json::from_value(envelope.ask).map_err(|error| wrong(error.into()))?;
    Ok(Some(ask))
}

pub(crate) fn failure(error: &Error) -> HostAnswer {
    HostAnswer::Failure {
        failure: WireError::new(error),
    }
}

pub(crate) async fn tell(
    to: &mut (impl tokio::io::AsyncWrite + Unpin),
    message: &impl Serialize,
) -> io::Result<()> {
    timeout(PATIENCE, wire::tell(to, message)).await?
}

pub(super) async fn send(to: &mut (impl tokio::io::AsyncWrite + Unpin), frame: &HostFrame) -> io::Result<()> {
    timeout(PATIENCE, wire::send(to, frame)).await?
}
