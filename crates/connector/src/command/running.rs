//! A running process of a program.

use std::sync::Arc;
use std::time::Duration;

use cellblock_interpreter::connector::{Card, ConnectorError, ConnectorErrorKind};
use cellblock_settings::Time;
use serde_json::{Map, Value};
use tokio::io::AsyncWriteExt as _;
use tokio::process::ChildStdin;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::calls::{Calls, FetchOutcome};
use super::service::CommandServiceOptions;
use super::{functions, message, reader};
use crate::process::{ProgramLaunch, ProgramStreams, log_lines};

/// Maximum number of requests that wait until the program reads them.
const QUEUE: usize = 64;

/// A running process. Dropping it ends the process with everything that it started.
#[derive(Debug)]
pub(crate) struct CommandProcess {
    pub(super) cards: Vec<Card>,
    process: ConnectorProcess,
}

/// A process that answers requests.
#[derive(Debug)]
struct ConnectorProcess {
    calls: Arc<Calls>,
    requests: mpsc::Sender<Vec<u8>>,
    reader: AbortHandle,
    timeout: Duration,
}

impl CommandProcess {
    /// Starts a process and asks it for its functions.
    pub(super) async fn start(
        options: &CommandServiceOptions,
        launch: &ProgramLaunch,
        greeting: &Map<String, Value>,
    ) -> Result<Self, ConnectorError> {
        let process = ConnectorProcess::start(options, launch)?;
        let CommandServiceOptions { label, program, .. } = options;
        let listed = process.request(
            |id| message::functions(id, greeting),
            ("list its functions", "start_timeout", program.start_timeout),
        );
        let (cards, left_out) = functions::read(listed.await?, program.allow_writes)?;
        if !left_out.is_empty() {
            tracing::warn!(
                connector = label,
                functions = ?left_out,
                "functions of a connector are left out: they write, and the connector does not have \
                 `allow_writes: true`"
            );
        }
        Ok(Self { cards, process })
    }

    /// Calls a function.
    pub(super) async fn call(&self, function: &str, arguments: Map<String, Value>) -> FetchOutcome {
        let process = &self.process;
        let limit = ("answer", "timeout", process.timeout);
        process
            .request(|id| message::call(id, function, &arguments), limit)
            .await
    }

    /// Returns when and why it ended, and whether it had answered a call until then.
    pub(super) fn ended(&self) -> Option<(std::time::Instant, ConnectorError, bool)> {
        let calls = &self.process.calls;
        let (when, why) = calls.ended()?;
        Some((when, why, calls.was_useful()))
    }

    /// Ends it if it has not answered anything for the time of a call although it had to.
    pub(super) fn end_if_stuck(&self) {
        self.process
            .end_if_stuck(("answer", "timeout", self.process.timeout));
    }
}

/// Limit of a wait: its name, the key of the limit and the limit.
type Limit = (&'static str, &'static str, Duration);

impl ConnectorProcess {
    fn start(options: &CommandServiceOptions, launch: &ProgramLaunch) -> Result<Self, ConnectorError> {
        let started = launch.start().map_err(|error| {
            let text = format!("the command cannot be started: {error}; check `command` and the log");
            ConnectorError::provider(text)
        });
        let ProgramStreams {
            process,
            stdin,
            stdout,
            stderr,
        } = started?;
        let (connector, redaction) = (options.label.clone(), options.redaction.clone());
        tokio::spawn(log_lines(stderr, move |line| {
            let line = redaction.text(line);
            tracing::info!(target: "cellblock::connector", connector, "{line}");
        }));
        let (requests, lines) = mpsc::channel(QUEUE);
        tokio::spawn(write(stdin, lines));
        let calls = Arc::new(Calls::new());
        let (reading, max_result) = (Arc::clone(&calls), options.calls.max_result);
        // The task has the process, so that the end of the runtime ends both.
        let reader = tokio::spawn(async move {
            reader::answers(process, stdout, max_result, &reading).await;
        });
        Ok(Self {
            calls,
            requests,
            reader: reader.abort_handle(),
            timeout: options.calls.timeout,
        })
    }

    /// Makes a request. Dropping the future cancels it.
    async fn request(&self, line: impl FnOnce(u64) -> Vec<u8>, limit: Limit) -> FetchOutcome {
        let (id, answer) = self.calls.open()?;
        let mut cancel = Cancel {
            process: self,
            id,
            sent: false,
        };
        let answered = async {
            // Full as long as the program does not read; closed after its end, which has a reason.
            let _ = self.requests.send(line(id)).await;
            cancel.sent = true;
            answer.await
        };
        let answered = tokio::time::timeout(limit.2, answered).await;
        let answer = match answered {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(late(limit)),
            Err(_) => {
                self.end_if_stuck(limit);
                Err(self.calls.ended().map_or_else(|| late(limit), |(_, why)| why))
            }
        };
        drop(cancel);
        answer
    }

    fn end_if_stuck(&self, limit: Limit) {
        if self.calls.is_stuck(limit.2) {
            let text = format!(
                "{}; it was ended, and is started again for the next call",
                late(limit)
            );
            self.calls
                .end(ConnectorError::new(ConnectorErrorKind::Timeout, text));
            self.reader.abort();
        }
    }
}

fn late((what, key, limit): Limit) -> ConnectorError {
    let text = format!(
        "the command did not {what} within {}, the limit `{key}`",
        Time(limit)
    );
    ConnectorError::new(ConnectorErrorKind::Timeout, text)
}

impl Drop for ConnectorProcess {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// Cancels a request whose caller has left.
struct Cancel<'a> {
    process: &'a ConnectorProcess,
    id: u64,
    sent: bool,
}

impl Drop for Cancel<'_> {
    fn drop(&mut self) {
        if !self.sent {
            self.process.calls.forget(self.id);
        } else if self.process.calls.cancel(self.id) {
            // A program that does not read its requests would not read this one either.
            let _ = self.process.requests.try_send(message::cancel(self.id));
        }
    }
}

/// Writes requests until there are no more, or the program stops reading.
async fn write(mut stdin: ChildStdin, mut lines: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = lines.recv().await {
        if stdin.write_all(&line).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}
