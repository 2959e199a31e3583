//! One client: it is who it has to be, it asks, and it hears the answer.

use std::future::ready;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cellblock_interpreter::hosting::Resident;
use cellblock_interpreter::toolset::ToolEvent;
use rustix::process::geteuid;
use serde::Serialize;
use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::broadcast;
use tokio::time::timeout;

use super::{Shared, description};
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::session::plan::SessionDataset;
use crate::session::toolbox::Toolbox;
use crate::session::wire::{self, Ask, GENERATION, HostAnswer, HostFrame, HostRequest};
use crate::session_error::Told;

/// Maximum time for a client to send its request, and to read the answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Why a call is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GivenUp {
    /// Nobody waits for it any more.
    Left,
    /// The session ends.
    Closing,
}

pub(super) async fn serve<T: Toolbox>(shared: Arc<Resident<Shared<T>>>, mut stream: UnixStream) {
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
    if ask == Ask::Stop {
        // Answered by whoever ends the host.
        let _ = shared.stops.send(stream).await;
        return;
    }
    let (reader, writer) = stream.into_split();
    let mut client = Client { reader, writer };
    if let Err(error) = client.answer(&shared, ask).await {
        tracing::debug!(error = &error as &dyn std::error::Error, "a client has left");
    }
}

/// What the client wants; `None` where it left without a word.
async fn question(stream: &mut UnixStream) -> Result<Option<Ask>> {
    let wrong = |error: io::Error| Error::Refused(format!("read the question: {error}"));
    let message = match wire::receive(stream).await.map_err(wrong)? {
        None => return Ok(None),
        Some(HostFrame::Message(message)) => message,
        Some(_) => return Err(wrong(io::ErrorKind::InvalidData.into())),
    };
    let envelope: HostRequest = wire::read(&message).map_err(wrong)?;
    if envelope.generation != GENERATION {
        return Err(Error::Refused(format!(
            "this session was started by another version of cellblock, {}; stop it and start another",
            env!("CARGO_PKG_VERSION")
        )));
    }
    let ask = serde_json::from_value(envelope.ask).map_err(|error| wrong(error.into()))?;
    Ok(Some(ask))
}

struct Client {
    reader: OwnedReadHalf,
    writer: OwnedWriteHalf,
}

impl Client {
    async fn answer<T: Toolbox>(&mut self, shared: &Arc<Resident<Shared<T>>>, ask: Ask) -> io::Result<()> {
        let answer = match ask {
            Ask::Describe => HostAnswer::Description {
                description: Box::new(description(shared)),
            },
            Ask::Prompt => HostAnswer::Prompt {
                text: shared.toolbox.prompt(),
            },
            Ask::Call {
                tool,
                arguments,
                watch,
            } => match self.call(shared, &tool, arguments, watch).await? {
                Some(answer) => answer,
                None => return Ok(()),
            },
            Ask::AddDataset { dataset } => add_dataset(shared, &dataset).await,
            Ask::Stop => return Ok(()),
        };
        tell(&mut self.writer, &answer).await
    }

    /// Calls a tool when it is its turn; no answer where nobody waits for one.
    async fn call<T: Toolbox>(
        &mut self,
        shared: &Arc<Resident<Shared<T>>>,
        tool: &str,
        arguments: Value,
        watch: bool,
    ) -> io::Result<Option<HostAnswer>> {
        let turn = tokio::select! {
            biased;
            () = self.left() => return Ok(None),
            turn = shared.turn() => turn,
        };
        let Ok(turn) = turn else { return Ok(Some(closed())) };
        shared.calls.fetch_add(1, Ordering::Relaxed);
        let mut events = watch.then(|| shared.toolbox.events());
        let mut call = pin!(shared.toolbox.call(tool, arguments));
        let given_up = loop {
            tokio::select! {
                biased;
                () = shared.closed() => break GivenUp::Closing,
                event = next(&mut events) => if self.pass_on(event).await.is_err() {
                    break GivenUp::Left;
                },
                result = &mut call => {
                    // What it wrote last.
                    while let Some(Ok(event)) = events.as_mut().map(broadcast::Receiver::try_recv) {
                        self.pass_on(event).await?;
                    }
                    return Ok(Some(match result {
                        Ok(result) => HostAnswer::Result { result },
                        Err(error) => failure(&error),
                    }));
                }
                () = left(&mut self.reader) => break GivenUp::Left,
            }
        };
        // Before others have their turn it is over.
        let _ = turn.until(ready(()), call).await;
        drop(turn);
        Ok((given_up == GivenUp::Closing).then(closed))
    }

    async fn left(&mut self) {
        left(&mut self.reader).await;
    }

    async fn pass_on(&mut self, event: ToolEvent) -> io::Result<()> {
        match event {
            ToolEvent::Stdout(bytes) => send(&mut self.writer, &HostFrame::Stdout(bytes)).await,
            ToolEvent::Stderr(bytes) => send(&mut self.writer, &HostFrame::Stderr(bytes)).await,
            ToolEvent::Visualization { path, media_type, .. } => {
                tell(&mut self.writer, &HostAnswer::Visualization { path, media_type }).await
            }
        }
    }
}

/// Completes when the client is gone. It has said all that it may say.
async fn left(reader: &mut OwnedReadHalf) {
    let _ = reader.read(&mut [0]).await;
}

/// What happens next; never, where nobody watches.
async fn next(events: &mut Option<broadcast::Receiver<ToolEvent>>) -> ToolEvent {
    if let Some(receiver) = events {
        loop {
            match receiver.recv().await {
                Ok(event) => return event,
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => break,
            }
        }
    }
    std::future::pending().await
}

async fn add_dataset<T: Toolbox>(shared: &Arc<Resident<Shared<T>>>, dataset: &SessionDataset) -> HostAnswer {
    let Some(_held) = shared.hold() else {
        return closed();
    };
    tokio::select! {
        biased;
        () = shared.closed() => closed(),
        added = shared.toolbox.add_dataset(dataset) => match added {
            Ok(added) => {
                shared.datasets().push(dataset.clone());
                HostAnswer::AddedDataset { added }
            }
            Err(error) => failure(&error),
        },
    }
}

fn closed() -> HostAnswer {
    HostAnswer::Failure {
        failure: Told {
            messages: vec!["the session ended before the call did".to_owned()],
            hints: vec!["start another with `cellblock session start`".to_owned()],
            code: ExitCode::Backend,
        },
    }
}

fn failure(error: &Error) -> HostAnswer {
    HostAnswer::Failure {
        failure: Told::new(error),
    }
}

async fn tell(to: &mut (impl tokio::io::AsyncWrite + Unpin), message: &impl Serialize) -> io::Result<()> {
    timeout(PATIENCE, wire::tell(to, message)).await?
}

async fn send(to: &mut (impl tokio::io::AsyncWrite + Unpin), frame: &HostFrame) -> io::Result<()> {
    timeout(PATIENCE, wire::send(to, frame)).await?
}
