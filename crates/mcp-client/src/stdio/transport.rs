//! Messages as lines of a process' stdin and stdout.

use std::sync::Arc;
use std::time::Duration;

use cellblock_connector::process::{Line, Lines, Process};
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::service::RoleClient;
use rmcp::transport::Transport;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::failure::Failure;
use crate::wire::Wire;
use crate::words;

/// Maximum number of messages that wait until the server reads them.
const QUEUE: usize = 64;
/// Maximum number of lines that are not messages: some servers print a greeting, or log to the
/// wrong stream.
const NOISE: usize = 1000;
/// Maximum time for a server to exit after the end of its stdin.
const GRACE: Duration = Duration::from_secs(2);

/// A connection to a server that is a process.
#[derive(Debug)]
pub(crate) struct Stdio {
    process: Process,
    lines: Lines<BufReader<ChildStdout>>,
    queue: Option<mpsc::Sender<StdioMessage>>,
    wire: Arc<Wire>,
    noise: usize,
}

/// A message on its way to a server.
#[derive(Debug)]
struct StdioMessage {
    request: Option<RequestId>,
    line: Vec<u8>,
}

impl Stdio {
    pub(super) fn new(process: Process, stdin: ChildStdin, stdout: ChildStdout, wire: Arc<Wire>) -> Self {
        let (queue, messages) = mpsc::channel(QUEUE);
        tokio::spawn(write(stdin, messages, Arc::clone(&wire)));
        let limit = usize::try_from(wire.most()).unwrap_or(usize::MAX);
        Self {
            process,
            lines: Lines::new(BufReader::with_capacity(64 << 10, stdout), limit),
            queue: Some(queue),
            wire,
            noise: 0,
        }
    }

    /// Returns the next message, or why there is none.
    async fn next(&mut self) -> Result<ServerJsonRpcMessage, Failure> {
        loop {
            let line = match self.lines.next().await {
                Ok(Line::Whole(line)) => line,
                Ok(Line::TooLong) => return Err(self.wire.too_large(None)),
                Ok(Line::End) => return Err(ended(None)),
                Err(error) => return Err(ended(Some(error))),
            };
            let text = match String::from_utf8(line) {
                Ok(text) => text,
                Err(error) => return Err(Failure::unread("it is not UTF-8", error.utf8_error())),
            };
            if !text.trim_start().starts_with('{') {
                self.noise += usize::from(!text.trim().is_empty());
                tracing::debug!(
                    line = words::told(&text, 200),
                    "a tool server printed a line that is not a message"
                );
                if self.noise > NOISE {
                    return Err(Failure::malformed(format!(
                        "{NOISE} lines of its stdout were not JSON objects; it must log to stderr"
                    )));
                }
                continue;
            }
            if let Some(message) = self.wire.read(&text)? {
                return Ok(message);
            }
        }
    }
}

fn ended(error: Option<std::io::Error>) -> Failure {
    Failure::Ended {
        when: "before it responded",
        source: error.map(|error| Arc::new(error) as _),
    }
}

impl Transport<RoleClient> for Stdio {
    type Error = Failure;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Failure>> + Send + 'static {
        self.wire.sending(&message);
        let sent = self.queue.as_ref().map_or(Err(ended(None)), |queue| {
            let line = line(&message)?;
            let request = match message {
                JsonRpcMessage::Request(request) => Some(request.id),
                _ => None,
            };
            queue
                .try_send(StdioMessage { request, line })
                .map_err(|error| match error {
                    mpsc::error::TrySendError::Full(_) => Failure::Deaf { limit: QUEUE },
                    mpsc::error::TrySendError::Closed(_) => ended(None),
                })
        });
        std::future::ready(sent)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        match self.next().await {
            Ok(message) => Some(message),
            Err(failure) => {
                self.wire.end(failure);
                None
            }
        }
    }

    async fn close(&mut self) -> Result<(), Failure> {
        // The end of its stdin tells a server to exit.
        self.queue = None;
        let ends = async { while matches!(self.lines.next().await, Ok(Line::Whole(_))) {} };
        let in_time = timeout(GRACE, ends).await.is_ok();
        let status = self.process.end().await;
        tracing::debug!(?status, in_time, "a tool server exited");
        Ok(())
    }
}

/// Formats a message.
fn line(message: &ClientJsonRpcMessage) -> Result<Vec<u8>, Failure> {
    let mut line = serde_json::to_vec(message)
        .map_err(|error| Failure::unread("a message of ours cannot be written", error))?;
    line.push(b'\n');
    Ok(line)
}

/// Writes messages until there are no more, or the server stops reading.
async fn write(mut stdin: ChildStdin, mut messages: mpsc::Receiver<StdioMessage>, wire: Arc<Wire>) {
    while let Some(StdioMessage { request, line }) = messages.recv().await {
        if stdin.write_all(&line).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
        if let Some(id) = request {
            wire.sent(&id);
        }
    }
}
