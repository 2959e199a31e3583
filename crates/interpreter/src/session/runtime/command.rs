//! Running a command in a session's sandbox, between cells.
//!
//! Commands and cells of one session take turns: the task that owns the session runs one at a time.
//! So the files of a command can be distinguished from those of a cell, and ending the processes of
//! a cell never hits a command. An interrupt stops whichever runs.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::{Duration, Instant};

use cellblock_protocol::Stream;
use cellblock_sandbox::guest::{CommandEvent, SandboxCommand};
use tokio::sync::oneshot;

use crate::error::{Effect, Error, Result};
use crate::execution::StreamText;
use crate::session::contents::Contents;
use crate::session::contents::collection::Outputs;
use crate::session::journal::Journal;
use crate::session::runtime::Runtime;
use crate::session::runtime::capture::StreamCapture;
use crate::session::runtime::environment::environment;

/// Directory in which commands start.
const DIRECTORY: &str = "/workspace";
/// Time after its deadline in which the end of a command must be reported; the guest gives up its warden
/// before that.
const END_LIMIT: Duration = Duration::from_secs(20);
/// The signal that the kernel sends where memory runs out.
const KILL: i32 = 9;
/// Exit code of a shell for a program that was killed.
const KILLED: i32 = 128 + KILL;

/// A command to run.
#[derive(Debug)]
pub(crate) struct CommandOrder {
    pub(crate) argv: Vec<String>,
    pub(crate) timeout: Duration,
    /// Packages to install, as requirement strings.
    pub(crate) requirements: Vec<String>,
    /// Its environment, on top of the one that commands of the sandbox have.
    pub(crate) env: BTreeMap<String, String>,
    /// Maximum number of bytes of each stream in its answer.
    pub(crate) stream_bytes: usize,
    /// Whether a model reads the streams: as they stand after their redraws, and with the whole in
    /// the sandbox if one is longer.
    pub(crate) for_model: bool,
    /// The most files in its answer.
    pub(crate) files: usize,
    /// Hears what it writes as it comes.
    pub(crate) listener: Option<Box<dyn Listener>>,
}

/// Hears what a command writes.
pub(crate) trait Listener: Debug + Send + Sync {
    /// Takes bytes that the command wrote.
    fn wrote(&self, stream: Stream, bytes: Vec<u8>);
}

/// Result of a command.
#[derive(Debug)]
pub(crate) struct CommandResult {
    pub(crate) end: CommandEnd,
    pub(crate) stdout: StreamText,
    pub(crate) stderr: StreamText,
    pub(crate) outputs: Outputs,
    pub(crate) duration: Duration,
    /// Additional note, such as a limit that was hit.
    pub(crate) notes: Vec<String>,
    /// Store of the files.
    pub(crate) store: cellblock_artifact::Store,
}

/// End of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandEnd {
    /// With this code.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
    /// Killed at its deadline.
    TimedOut,
    /// Killed because it wrote too much.
    Flooded,
    /// Stopped by an interrupt.
    Interrupted,
}

/// A command that runs, as far as it is known.
#[derive(Debug)]
struct CommandRun {
    streams: [StreamCapture; 2],
    stopped: Option<CommandEnd>,
    /// Time at which it is killed, having been sent SIGINT.
    kill_at: Option<tokio::time::Instant>,
}

/// Last message of the guest.
#[derive(Clone, Debug)]
enum GuestReport {
    Exited {
        code: Option<i32>,
        signal: Option<i32>,
        timed_out: bool,
        leaked: bool,
    },
    Failed(String),
    Gone,
}

impl Runtime {
    pub(in crate::session) async fn run_command(
        &mut self,
        contents: &mut Contents,
        journal: &mut Journal,
        order: &CommandOrder,
        asker: &mut oneshot::Sender<Result<CommandResult>>,
    ) -> Result<CommandResult> {
        // As long as the command itself may run; what is installed by then is there for the next one.
        let require = async {
            self.require_own(journal).await?;
            self.require(journal, &order.requirements).await
        };
        let required = tokio::time::timeout(order.timeout, require).await;
        let limit = order.timeout.as_secs_f64();
        required.map_err(|_| Error::Installing { limit })??;
        let mut notes = self.settled(contents, journal).await?;
        let started = Instant::now();
        self.has_files = true;
        contents.commands += 1;
        let mut run = CommandRun {
            streams: [(); 2].map(|()| StreamCapture::new(order.stream_bytes, order.for_model)),
            stopped: None,
            kill_at: None,
        };
        let said = self.follow(order, &mut run, asker).await?;
        let duration = started.elapsed();
        let end = self
            .judge_command(contents, journal, &run, &said, &mut notes)
            .await?;
        let [stdout, stderr] = run.streams;
        let stdout = self.finish_stream(contents, stdout, "stdout").await;
        let stderr = self.finish_stream(contents, stderr, "stderr").await;
        let outputs = if self.sandbox.is_some() {
            self.collect_outputs(contents, order.files).await
        } else {
            Outputs::default()
        };
        notes.extend(self.save_volume(contents).await);
        Ok(CommandResult {
            end,
            stdout,
            stderr,
            outputs,
            duration,
            notes,
            store: self.shared.store.clone(),
        })
    }

    /// Starts the command and takes in what it writes, to its end.
    async fn follow(
        &mut self,
        order: &CommandOrder,
        run: &mut CommandRun,
        asker: &mut oneshot::Sender<Result<CommandResult>>,
    ) -> Result<GuestReport> {
        let sandbox = self.sandbox.as_ref().ok_or(Error::Closed)?;
        let guest = sandbox.guest();
        let mut command = guest
            .run(SandboxCommand {
                argv: order.argv.clone(),
                cwd: DIRECTORY.to_owned(),
                env: environment(&self.layers, self.way_out_env(), &order.env),
                inherit: true,
                timeout: order.timeout,
                input: false,
                keep: None,
                terminal: None,
            })
            .await?;
        let last = tokio::time::Instant::now() + order.timeout + END_LIMIT;
        let mut orphaned = false;
        loop {
            let kill_at = run.kill_at.unwrap_or(last);
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(kill_at), if run.kill_at.is_some() => {
                    run.kill_at = None;
                    guest.stop(&command, true).await?;
                }
                () = tokio::time::sleep_until(last) => return Ok(GuestReport::Gone),
                stop = self.interrupts.asked(), if !orphaned && run.stopped.is_none() => {
                    orphaned = !stop;
                    if stop {
                        run.stopped = Some(CommandEnd::Interrupted);
                        run.kill_at = Some(tokio::time::Instant::now() + self.limits.grace);
                        guest.stop(&command, false).await?;
                    }
                }
                () = asker.closed(), if orphaned && run.stopped.is_none() => {
                    run.stopped = Some(CommandEnd::Interrupted);
                    guest.stop(&command, true).await?;
                }
                event = command.events.recv() => match event {
                    Some(CommandEvent::Started) => {}
                    Some(CommandEvent::Output(stream, bytes)) => {
                        // Asked for once: a guest that writes on and on must not fill the queue of
                        // what it is asked.
                        if run.take(stream, bytes, order, self.limits.stream_bytes) {
                            guest.stop(&command, true).await?;
                        }
                    }
                    Some(CommandEvent::Exited { code, signal, timed_out, leaked }) => {
                        return Ok(GuestReport::Exited { code, signal, timed_out, leaked });
                    }
                    Some(CommandEvent::Failed(reason)) => {
                        let gone = guest.is_gone();
                        return Ok(if gone { GuestReport::Gone } else { GuestReport::Failed(reason) });
                    }
                    None => return Ok(GuestReport::Gone),
                },
            }
        }
    }

    /// Makes an end of what the guest said, and of the sandbox what the command has left of it.
    async fn judge_command(
        &mut self,
        contents: &mut Contents,
        journal: &mut Journal,
        run: &CommandRun,
        said: &GuestReport,
        notes: &mut Vec<String>,
    ) -> Result<CommandEnd> {
        let (end, leaked) = match said {
            GuestReport::Exited {
                code,
                signal,
                timed_out,
                leaked,
            } => {
                let end = match (run.stopped, *timed_out, *code, *signal) {
                    (Some(stopped), ..) => stopped,
                    (None, true, ..) => CommandEnd::TimedOut,
                    (None, false, Some(code), _) => CommandEnd::Exited(code),
                    (None, false, None, signal) => CommandEnd::Signaled(signal.unwrap_or(KILL)),
                };
                (end, *leaked)
            }
            GuestReport::Failed(reason) => {
                return Err(Error::Request(format!("start the command: {reason}")));
            }
            GuestReport::Gone => {
                // Memory that ran out may have taken the guest along; nothing else that ends it is
                // a command's doing.
                let by_memory = self.memory_kills().await > 0;
                self.discard(contents, journal);
                if !by_memory {
                    return Err(cellblock_sandbox::Error::gone("guest").into());
                }
                self.lost_files = None;
                notes.push(format!(
                    "the sandbox was lost because its memory limit of {} bytes was exceeded; all files \
                     and variables are gone",
                    self.limits.memory_bytes
                ));
                return Ok(CommandEnd::Signaled(KILL));
            }
        };
        if run.stopped == Some(CommandEnd::Flooded) {
            notes.push(format!(
                "the command was killed because it wrote more than {} bytes",
                self.limits.stream_bytes
            ));
        }
        if leaked {
            self.end_leaked(contents, journal, notes).await?;
        }
        let killed = matches!(end, CommandEnd::Signaled(KILL) | CommandEnd::Exited(KILLED));
        if killed && self.memory_kills().await > 0 {
            notes.push(format!(
                "a process was killed because the memory limit of {} bytes was exceeded",
                self.limits.memory_bytes
            ));
        }
        if end == CommandEnd::TimedOut && self.memory_events().await.1 > 0 {
            notes.push(format!(
                "the memory limit of {} bytes was reached, too: use less memory if that is what took so long",
                self.limits.memory_bytes
            ));
        }
        Ok(end)
    }

    /// Returns the number of processes killed because of memory since the last call.
    async fn memory_kills(&mut self) -> u64 {
        self.memory_events().await.0
    }

    /// The same, and how often the limit on memory was reached.
    async fn memory_events(&mut self) -> (u64, u64) {
        let Some(sandbox) = &self.sandbox else {
            return (0, 0);
        };
        let Ok(usage) = sandbox.usage().await else {
            return (0, 0);
        };
        let before = std::mem::replace(&mut self.usage, usage);
        (
            usage.memory_kills.saturating_sub(before.memory_kills),
            usage.memory_refusals.saturating_sub(before.memory_refusals),
        )
    }

    /// Ends everything but the kernel: a command has got rid of the process that watched over it.
    async fn end_leaked(
        &mut self,
        contents: &mut Contents,
        journal: &mut Journal,
        notes: &mut Vec<String>,
    ) -> Result<()> {
        let sandbox = self.sandbox.as_ref().ok_or(Error::Closed)?;
        let spared = self.kept.with(self.kernel.as_ref()).await;
        let ended = sandbox.guest().kill_all_but(&spared).await;
        notes.push(
            "the command ended the process that watches over it, so every other process of the \
             sandbox was ended"
                .to_owned(),
        );
        match ended {
            Err(error) if error.effect() == Effect::Destroys => Err(error.into()),
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "processes of a command are left; the sandbox is given up"
                );
                self.discard(contents, journal);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Makes sure that there is a sandbox with the session's data, with or without a live kernel;
    /// returns the pending notes about the previous one.
    pub(in crate::session) async fn settled(
        &mut self,
        contents: &mut Contents,
        journal: &mut Journal,
    ) -> Result<Vec<String>> {
        if self
            .sandbox
            .as_ref()
            .is_some_and(|sandbox| sandbox.guest().is_gone())
        {
            self.discard(contents, journal);
        }
        if self.sandbox.is_none() {
            self.ready(contents, journal).await?;
        }
        Ok(self.lost_files.take().into_iter().collect())
    }
}

impl CommandRun {
    /// Takes what was written; answers whether it has just become too much.
    fn take(&mut self, stream: Stream, bytes: Vec<u8>, order: &CommandOrder, limit: u64) -> bool {
        let [stdout, stderr] = &mut self.streams;
        let kept = match stream {
            Stream::Stdout => stdout,
            Stream::Stderr => stderr,
        };
        if self.stopped == Some(CommandEnd::Flooded) {
            return false;
        }
        kept.push(&bytes);
        if let Some(listener) = &order.listener {
            listener.wrote(stream, bytes);
        }
        let flooded = self.streams.iter().map(StreamCapture::total).sum::<u64>() > limit;
        if flooded {
            self.stopped = Some(CommandEnd::Flooded);
        }
        flooded
    }
}
