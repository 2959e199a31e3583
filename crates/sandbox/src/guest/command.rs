//! Commands of a sandbox: those that are run to their end, and those that live beside cells.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use cellblock_protocol::{Blob, Frame, FromGuest, Stream, TerminalSize, ToGuest};
use tokio::sync::{mpsc, oneshot};

use super::{ANSWER_LIMIT, AnswerSender, Guest, GuestRequest, answered_within, send, unexpected};
use crate::error::{Error, Result, SandboxErrorKind};

/// Maximum number of unread parts of a command's output; beyond it the command waits.
const PARTS: usize = 64;
/// Pause after an answer without output to a request that could wait for it.
const PAUSE: Duration = Duration::from_millis(5);

/// A command to run in the sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxCommand {
    /// The program and its arguments; a bare name is searched along `PATH`.
    pub argv: Vec<String>,
    /// Working directory.
    pub cwd: String,
    /// Environment variables.
    pub env: BTreeMap<String, String>,
    /// Whether the variables are added to the sandbox's default environment; otherwise they replace
    /// it.
    pub inherit: bool,
    /// Maximum duration, after which the command is killed with everything that it started.
    pub timeout: Duration,
    /// Whether it reads what [`GuestLink::input`] sends; otherwise its standard input is empty.
    pub input: bool,
    /// Path of a file for its output. The command is then a process beside cells: see
    /// [`GuestLink::start`].
    pub keep: Option<String>,
    /// Size of its terminal, if it gets one. Stdout and stderr are then one stream, and input is
    /// open.
    pub terminal: Option<TerminalSize>,
}

/// A running command.
#[derive(Debug)]
pub struct RunningCommand {
    /// Events of the command; the last one is [`Exited`](CommandEvent::Exited) or
    /// [`Failed`](CommandEvent::Failed). A command whose events are not read waits.
    pub events: mpsc::Receiver<CommandEvent>,
    number: u64,
}

/// Part of the kept output of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptOutput {
    /// Offset of the first byte, which is greater than the requested one if the bytes before it are
    /// lost.
    pub offset: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Number of bytes that the command has written until now.
    pub total: u64,
    /// Whether the output ends after these bytes.
    pub eof: bool,
    /// Ranges of the bytes from stderr, in ascending order.
    pub stderr: Vec<Range<usize>>,
}

/// An event of a running command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandEvent {
    /// The command has started, and its output is kept.
    Started,
    /// The command wrote output.
    Output(Stream, Vec<u8>),
    /// The command ended.
    Exited {
        /// Its exit code, if it exited.
        code: Option<i32>,
        /// The signal that killed it, if one did.
        signal: Option<i32>,
        /// Whether it exceeded its maximum duration.
        timed_out: bool,
        /// Whether processes that it started may still run.
        leaked: bool,
    },
    /// The command could not be started, or the guest has exited.
    Failed(String),
}

/// The way to a guest's kept commands and to connections. It does not keep the guest: its requests
/// fail once the sandbox has ended.
#[derive(Clone, Debug)]
pub struct GuestLink {
    asks: mpsc::WeakSender<GuestRequest>,
    last: Arc<AtomicU64>,
}

impl Guest {
    /// Returns the way to its kept commands and to connections.
    pub fn link(&self) -> GuestLink {
        GuestLink {
            asks: self.asks.downgrade(),
            last: Arc::clone(&self.last),
        }
    }

    /// Runs a command.
    pub async fn run(&self, command: SandboxCommand) -> Result<RunningCommand> {
        run(&self.asks, &self.last, command).await
    }

    /// Sends SIGINT to a command, or kills it with everything that it started; its events report
    /// its end.
    pub async fn stop(&self, command: &RunningCommand, kill: bool) -> Result<()> {
        let message = ToGuest::Stop {
            exec: command.number,
            kill,
        };
        self.send(message, None, AnswerSender::None).await.map(drop)
    }
}

async fn run(
    asks: &mpsc::Sender<GuestRequest>,
    last: &AtomicU64,
    command: SandboxCommand,
) -> Result<RunningCommand> {
    let (sender, events) = mpsc::channel(PARTS);
    let message = ToGuest::Exec {
        exec: 0,
        argv: command.argv,
        cwd: command.cwd,
        env: command.env,
        inherit: command.inherit,
        timeout_ms: u64::try_from(command.timeout.as_millis()).unwrap_or(u64::MAX),
        input: command.input,
        keep: command.keep,
        terminal: command.terminal,
    };
    let number = send(asks, last, message, None, AnswerSender::Parts(sender)).await?;
    Ok(RunningCommand { events, number })
}

impl RunningCommand {
    /// Returns the number by which a [`GuestLink`] knows it.
    pub const fn number(&self) -> u64 {
        self.number
    }
}

impl GuestLink {
    /// Returns whether the sandbox has ended.
    pub fn is_gone(&self) -> bool {
        self.asks.upgrade().is_none_or(|asks| asks.is_closed())
    }

    /// Starts a command whose output the guest keeps, and that cleaning up after cells spares. Its
    /// only event from here on is its end.
    pub async fn start(&self, command: SandboxCommand) -> Result<RunningCommand> {
        let program = command.argv.first().cloned().unwrap_or_default();
        let mut running = run(&self.asks()?, &self.last, command).await?;
        let first = tokio::time::timeout(ANSWER_LIMIT, running.events.recv());
        let first = first.await.map_err(|_| SandboxErrorKind::TooLate {
            what: "the guest's answer",
            limit: ANSWER_LIMIT,
        })?;
        match first {
            Some(CommandEvent::Started) => Ok(running),
            Some(CommandEvent::Failed(reason)) if !self.is_gone() => Err(SandboxErrorKind::Guest {
                action: "start",
                path: program,
                code: "start".into(),
                reason,
            }
            .into()),
            Some(CommandEvent::Failed(_)) | None => Err(Error::gone("guest")),
            Some(_) => Err(unexpected()),
        }
    }

    /// Sends a signal to the process group of a command; SIGKILL also ends everything that it
    /// started.
    pub async fn signal(&self, command: u64, signal: i32) -> Result<()> {
        let message = ToGuest::Signal {
            request: 0,
            exec: command,
            signal,
        };
        let action = "send a signal to command";
        self.ask(message, None, action, command, Duration::ZERO)
            .await
            .map(drop)
    }

    /// Queues bytes for a command's standard input, all of them or none, and closes it after them
    /// if `close` is set.
    pub async fn input(&self, command: u64, bytes: Vec<u8>, close: bool) -> Result<()> {
        let message = ToGuest::Input {
            request: 0,
            exec: command,
            close,
        };
        let action = "send input to command";
        self.ask(message, Some(bytes), action, command, Duration::ZERO)
            .await
            .map(drop)
    }

    /// Changes the size of a command's terminal.
    pub async fn resize(&self, command: u64, size: TerminalSize) -> Result<()> {
        let message = ToGuest::Resize {
            request: 0,
            exec: command,
            size,
        };
        let action = "resize the terminal of command";
        self.ask(message, None, action, command, Duration::ZERO)
            .await
            .map(drop)
    }

    /// Reads up to `length` bytes of a command's output from an offset; waits up to `wait` for
    /// output that is not there yet. A caller that reads on after an answer without output never
    /// keeps a processor busy.
    pub async fn output(&self, command: u64, offset: u64, length: u64, wait: Duration) -> Result<KeptOutput> {
        let message = ToGuest::Output {
            request: 0,
            exec: command,
            offset,
            length,
            wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
        };
        let mut frame = self
            .ask(message, None, "read the output of command", command, wait)
            .await?;
        match (frame.message, frame.blobs.pop()) {
            (
                FromGuest::Output {
                    offset,
                    total,
                    eof,
                    stderr,
                    ..
                },
                Some(Blob::Memory(bytes)),
            ) if bytes.len() as u64 <= length => {
                if bytes.is_empty() && !eof && !wait.is_zero() {
                    // It comes early if too many requests wait.
                    tokio::time::sleep(PAUSE).await;
                }
                Ok(KeptOutput {
                    stderr: within(&stderr, offset, bytes.len()).ok_or_else(unexpected)?,
                    offset,
                    bytes,
                    total,
                    eof,
                })
            }
            _ => Err(unexpected()),
        }
    }

    /// Drops a command's output; one that is running is killed.
    pub async fn forget(&self, command: u64) -> Result<()> {
        self.tell(ToGuest::Forget { exec: command }).await
    }

    fn asks(&self) -> Result<mpsc::Sender<GuestRequest>> {
        self.asks.upgrade().ok_or_else(|| Error::gone("guest"))
    }

    async fn ask(
        &self,
        message: ToGuest,
        blob: Option<Vec<u8>>,
        action: &'static str,
        command: u64,
        longer: Duration,
    ) -> Result<Frame<FromGuest>> {
        let limit = ANSWER_LIMIT.saturating_add(longer);
        let object = command.to_string();
        let asked = self.ask_numbered(message, blob, action, &object, limit);
        asked.await.map(|(frame, _)| frame)
    }

    /// Asks, and returns the number of the request with the answer.
    pub(super) async fn ask_numbered(
        &self,
        message: ToGuest,
        blob: Option<Vec<u8>>,
        action: &'static str,
        object: &str,
        limit: Duration,
    ) -> Result<(Frame<FromGuest>, u64)> {
        let (answer, answered) = oneshot::channel();
        // The sender is dropped before the answer comes, so that waiting does not keep the guest.
        let number = send(
            &self.asks()?,
            &self.last,
            message,
            blob,
            AnswerSender::Once(answer),
        )
        .await?;
        let frame = answered_within(answered, limit, action, object).await?;
        Ok((frame, number))
    }

    /// Sends something that has no answer.
    pub(super) async fn tell(&self, message: ToGuest) -> Result<()> {
        send(&self.asks()?, &self.last, message, None, AnswerSender::None)
            .await
            .map(drop)
    }
}

/// Returns parts of the output as parts of bytes that begin at an offset; none if they are not in
/// order or not within the bytes.
fn within(parts: &[[u64; 2]], offset: u64, length: usize) -> Option<Vec<Range<usize>>> {
    let mut last = 0;
    let mut inside = Vec::with_capacity(parts.len());
    for [from, to] in parts {
        let at = |it: &u64| usize::try_from(it.checked_sub(offset)?).ok();
        let (from, to) = (at(from)?, at(to)?);
        if from < last || from >= to || to > length {
            return None;
        }
        inside.push(from..to);
        last = to;
    }
    Some(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_a_hostile_guest_makes_up_are_rejected() {
        assert_eq!(within(&[[10, 12], [12, 15]], 10, 5), Some(vec![0..2, 2..5]));
        assert_eq!(within(&[], 10, 0), Some(Vec::new()));
        for parts in [
            [[9, 11], [12, 13]],
            [[10, 12], [11, 13]],
            [[10, 12], [13, 13]],
            [[12, 11], [13, 14]],
            [[10, 12], [13, 16]],
            [[10, 12], [13, u64::MAX]],
        ] {
            assert_eq!(within(&parts, 10, 5), None, "{parts:?}");
        }
    }
}
