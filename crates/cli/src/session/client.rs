//! A command's side of the socket.

use std::io;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::geteuid;
use tokio::net::UnixStream;
use tokio::time::{sleep, timeout};

use super::place::SessionPlace;
use super::wire::{self, Description, GENERATION, HostAnswer, HostCommand, HostFrame, HostRequest};
use crate::error::{Error, Result};
use crate::session_error::{MAX_MESSAGE, SessionError};

/// Maximum time in which a host answers what costs it nothing, and in which it starts.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// Interval between two attempts to reach a host that is starting.
const PAUSE: Duration = Duration::from_millis(20);

/// A question that was asked.
#[derive(Debug)]
pub(crate) struct HostExchange {
    stream: UnixStream,
    place: SessionPlace,
}

/// Message from a host.
#[derive(Debug)]
pub(crate) enum HostMessage {
    /// A command in the sandbox wrote this to stdout.
    Stdout(Vec<u8>),
    /// Likewise to stderr.
    Stderr(Vec<u8>),
    /// The host says this.
    HostAnswer(HostAnswer),
}

impl HostExchange {
    /// Asks the session's host. When this completes it has taken the question on, however long the
    /// answer may take.
    pub(crate) async fn ask(place: &SessionPlace, ask: &HostCommand) -> Result<Self> {
        let accepted = timeout(PATIENCE, Self::accepted(place, ask)).await;
        accepted.unwrap_or_else(|_| Err(silent(place)))
    }

    /// Likewise, if the host is up.
    pub(crate) async fn ask_now(place: &SessionPlace, ask: &HostCommand) -> Result<Self> {
        let stream = connect_once(place).map_err(Error::process("reach the host"))?;
        Self::on(owned(stream, place)?, place, ask).await
    }

    /// The connection, for what is not a message.
    pub(crate) fn into_stream(self) -> UnixStream {
        self.stream
    }

    async fn accepted(place: &SessionPlace, ask: &HostCommand) -> Result<Self> {
        Self::on(connect(place).await?, place, ask).await
    }

    async fn on(mut stream: UnixStream, place: &SessionPlace, ask: &HostCommand) -> Result<Self> {
        let message = envelope(ask)?;
        if message.len() > MAX_MESSAGE {
            return Err(SessionError::TooLarge { bytes: message.len() }.into());
        }
        // A host that refuses the question closes without reading all of it; what it says is then
        // there to be read.
        let _ = wire::send(&mut stream, &HostFrame::Message(message)).await;
        let mut asked = Self {
            stream,
            place: place.clone(),
        };
        match asked.next().await? {
            HostMessage::HostAnswer(HostAnswer::Accepted) => Ok(asked),
            HostMessage::HostAnswer(other) => Err(unexpected(&other)),
            HostMessage::Stdout(_) | HostMessage::Stderr(_) => Err(unexpected(&HostAnswer::Accepted)),
        }
    }

    /// The next that is heard; failures of the host are errors here.
    pub(crate) async fn next(&mut self) -> Result<HostMessage> {
        let frame = wire::receive(&mut self.stream)
            .await
            .map_err(Error::process("listen to the session's host"))?;
        match frame {
            Some(HostFrame::Stdout(bytes)) => Ok(HostMessage::Stdout(bytes)),
            Some(HostFrame::Stderr(bytes)) => Ok(HostMessage::Stderr(bytes)),
            Some(HostFrame::Message(message)) => {
                match wire::read(&message).map_err(Error::process("read what the session's host says"))? {
                    HostAnswer::Failure { failure } => Err(Error::Told(failure)),
                    answer => Ok(HostMessage::HostAnswer(answer)),
                }
            }
            None => Err(ended(&self.place)),
        }
    }

    /// The answer alone; output before it is passed over.
    pub(crate) async fn answer(&mut self) -> Result<HostAnswer> {
        loop {
            if let HostMessage::HostAnswer(answer) = self.next().await? {
                return Ok(answer);
            }
        }
    }
}

/// Returns the state of the session.
pub(crate) async fn describe(place: &SessionPlace) -> Result<Description> {
    let describe = async {
        match HostExchange::ask(place, &HostCommand::Describe)
            .await?
            .answer()
            .await?
        {
            HostAnswer::Description { description } => Ok(*description),
            other => Err(unexpected(&other)),
        }
    };
    timeout(PATIENCE, describe)
        .await
        .unwrap_or_else(|_| Err(silent(place)))
}

/// An answer to another question.
pub(crate) fn unexpected(answer: &HostAnswer) -> Error {
    let problem = format!("an answer that was not asked for: {answer:?}");
    Error::process("talk to the session's host")(std::io::Error::other(problem))
}

/// The host does not answer.
pub(crate) fn silent(place: &SessionPlace) -> Error {
    SessionError::Silent {
        kind: place.kind(),
        id: place.id().clone(),
        after: PATIENCE,
    }
    .into()
}

fn envelope(ask: &HostCommand) -> Result<Vec<u8>> {
    let envelope = serde_json::to_value(ask).map(|ask| HostRequest {
        generation: GENERATION,
        ask,
    });
    envelope
        .and_then(|it| serde_json::to_vec(&it))
        .map_err(|error| Error::Refused(format!("write the question as JSON: {error}")))
}

/// Connects to the host, which may still be coming up.
async fn connect(place: &SessionPlace) -> Result<UnixStream> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Ok(stream) = connect_once(place) {
            return owned(stream, place);
        }
        if place.is_live()? != Some(true) {
            return Err(ended(place));
        }
        if Instant::now() >= deadline {
            return Err(silent(place));
        }
        sleep(PAUSE).await;
    }
}

fn connect_once(place: &SessionPlace) -> io::Result<UnixStream> {
    place.at_socket(|path| {
        // Without blocking: where the host's queue is full there is an error, and another attempt.
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
        UnixStream::from_std(socket.into())
    })
}

/// The stream, if the caller's user serves it.
fn owned(stream: UnixStream, place: &SessionPlace) -> Result<UnixStream> {
    let peer = stream.peer_cred().map_err(Error::process("ask who serves"))?;
    if peer.uid() != geteuid().as_raw() {
        return Err(Error::Refused(format!(
            "session `{}` is served by another user, {}",
            place.id(),
            peer.uid()
        )));
    }
    Ok(stream)
}

fn ended(place: &SessionPlace) -> Error {
    SessionError::Ended {
        kind: place.kind(),
        id: place.id().clone(),
    }
    .into()
}
