//! The host's side of a guest: requests and responses over one channel, owned by one task.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cellblock_protocol::{
    Blob, Disk, FileEntry, FileStamp, Frame, FromGuest, GENERATION, SkippedFile, Stream, ToGuest,
};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::{mpsc, oneshot};

use crate::channel::{FrameReader, write_frame};
use crate::error::{Error, Result, SandboxErrorKind};
use crate::incoming::Incoming;

/// Maximum time for a guest to respond to anything but a command.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// Maximum number of file bytes in one frame.
const CHUNK: usize = 1024 * 1024;
/// Maximum size of a response's blob in memory: more than is ever requested, so that a full disk
/// does not end a guest.
const IN_MEMORY: u64 = 8 * 1024 * 1024;
/// Maximum size in bytes of a file that is replaced in one step.
pub const MAX_REPLACE: usize = 8 * 1024 * 1024;
/// Maximum number of requests that wait for the owner task.
const QUEUE: usize = 64;
/// Maximum number of unread parts of a command's output; beyond it the command waits.
const PARTS: usize = 64;

/// Bit that marks the numbers of relayed requests, whose sender has its own numbers.
const PASSED_ON: u64 = 1 << 62;
/// Maximum number of unread responses to relayed requests; beyond it the guest waits.
const PASSED_BACK: usize = 2;

/// A guest. Dropping it closes its channel, which ends its room.
#[derive(Debug)]
pub struct Guest {
    asks: mpsc::Sender<Ask>,
    /// Number of the last message.
    last: AtomicU64,
}

#[derive(Debug)]
struct Ask {
    number: u64,
    message: ToGuest,
    blob: Option<Vec<u8>>,
    answer: Answer,
}

#[derive(Debug)]
enum Answer {
    None,
    Once(oneshot::Sender<Frame<FromGuest>>),
    Parts(mpsc::Sender<CommandEvent>),
    /// Sends nothing, but directs the responses to relayed requests to this channel.
    PassedOn(mpsc::Sender<Frame<FromGuest>>),
}

/// Relays requests of another party to a guest.
#[derive(Debug)]
pub struct Relay {
    asks: mpsc::Sender<Ask>,
    /// Responses of the guest.
    pub answers: mpsc::Receiver<Frame<FromGuest>>,
}

/// Sends relayed requests.
#[derive(Clone, Debug)]
pub struct GuestRequests(mpsc::Sender<Ask>);

impl Relay {
    /// Returns the sender for requests.
    pub fn requests(&self) -> GuestRequests {
        GuestRequests(self.asks.clone())
    }
}

impl GuestRequests {
    /// Relays a request; its number is repeated in the response.
    pub async fn pass_on(&self, mut message: ToGuest, blob: Option<Vec<u8>>) -> Result<()> {
        let number = match &mut message {
            ToGuest::Interrupt { .. } => &mut 0,
            ToGuest::Exec { exec, .. } | ToGuest::Stop { exec, .. } => exec,
            ToGuest::KillAll { request, .. }
            | ToGuest::List { request, .. }
            | ToGuest::Read { request, .. }
            | ToGuest::Write { request, .. }
            | ToGuest::Remove { request, .. }
            | ToGuest::Stats { request } => request,
        };
        if *number >= PASSED_ON {
            return Err(Error::protocol(
                "client",
                format!("a request has the number {number}"),
            ));
        }
        *number |= PASSED_ON;
        let ask = Ask {
            number: *number,
            message,
            blob,
            answer: Answer::None,
        };
        self.0.send(ask).await.map_err(|_| Error::gone("guest"))
    }
}

/// Returns the request number of a response.
fn answered(message: &mut FromGuest) -> Option<&mut u64> {
    match message {
        FromGuest::Hello { .. } => None,
        FromGuest::Stream { exec, .. } | FromGuest::Exited { exec, .. } => Some(exec),
        FromGuest::Files { request, .. }
        | FromGuest::Content { request, .. }
        | FromGuest::Ok { request }
        | FromGuest::Error { request, .. }
        | FromGuest::Stats { request, .. } => Some(request),
    }
}

/// Content of a directory in the sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Stamp for a later call that lists only subsequent changes.
    pub stamp: u64,
    /// Regular files.
    pub files: Vec<FileEntry>,
    /// Entries that cannot be served, with reasons.
    pub skipped: Vec<SkippedFile>,
    /// Total number of regular files, including those beyond the requested number.
    pub total: u64,
}

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
}

/// A running command.
#[derive(Debug)]
pub struct RunningCommand {
    /// Events of the command; the last one is [`Exited`](CommandEvent::Exited) or
    /// [`Failed`](CommandEvent::Failed). A command whose events are not read waits.
    pub events: mpsc::Receiver<CommandEvent>,
    number: u64,
}

/// An event of a running command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandEvent {
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

impl Guest {
    /// Connects to a guest over a channel.
    pub fn new(channel: UnixStream) -> Self {
        let (asks, queue) = mpsc::channel(QUEUE);
        let (read, write) = channel.into_split();
        let owner = Owner {
            write,
            waiting: HashMap::new(),
            commands: HashMap::new(),
            passed_on: None,
        };
        let frames = FrameReader::new(Incoming::new(read), "guest").spilling_over(IN_MEMORY);
        tokio::spawn(owner.run(frames, queue));
        Self {
            asks,
            last: AtomicU64::new(0),
        }
    }

    /// Returns whether the channel is known to have ended.
    pub fn is_gone(&self) -> bool {
        self.asks.is_closed()
    }

    /// Starts relaying requests of another party, in addition to one's own.
    pub async fn relay(&self) -> Result<Relay> {
        let (sender, answers) = mpsc::channel(PASSED_BACK);
        let message = ToGuest::Stats { request: 0 };
        self.send(message, None, Answer::PassedOn(sender)).await?;
        Ok(Relay {
            asks: self.asks.clone(),
            answers,
        })
    }

    /// Sends SIGINT to a process of the sandbox.
    pub async fn interrupt(&self, pid: u32) -> Result<()> {
        self.send(ToGuest::Interrupt { pid }, None, Answer::None)
            .await
            .map(drop)
    }

    /// Kills every process except the guest; files stay.
    pub async fn kill_all(&self) -> Result<()> {
        self.kill(None).await
    }

    /// Kills every process except the guest and one other; files stay.
    pub async fn kill_all_but(&self, pid: u32) -> Result<()> {
        self.kill(Some(pid)).await
    }

    async fn kill(&self, except: Option<u32>) -> Result<()> {
        self.ask(
            ToGuest::KillAll { request: 0, except },
            None,
            "end the processes below",
            "/",
        )
        .await
        .map(drop)
    }

    /// Lists regular files below `root` that changed since an earlier stamp.
    pub async fn list(&self, root: &str, since: Option<u64>, max_files: u32) -> Result<Listing> {
        let message = ToGuest::List {
            request: 0,
            root: root.to_owned(),
            since,
            max_files,
        };
        match self.ask(message, None, "list", root).await?.message {
            FromGuest::Files {
                stamp,
                mut files,
                skipped,
                total,
                ..
            } => {
                files.truncate(max_files as usize);
                Ok(Listing {
                    stamp,
                    files,
                    skipped,
                    total,
                })
            }
            _ => Err(unexpected()),
        }
    }

    /// Reads up to `length` bytes of a file; the flag says whether the file ends there.
    pub async fn read(&self, path: &str, offset: u64, length: u64) -> Result<(Blob, bool)> {
        let (blob, eof, _) = self.read_stamped(path, offset, length).await?;
        Ok((blob, eof))
    }

    /// Reads up to `length` bytes of a file, and returns its stamp for [`replace`](Self::replace).
    pub async fn read_stamped(
        &self,
        path: &str,
        offset: u64,
        length: u64,
    ) -> Result<(Blob, bool, Option<FileStamp>)> {
        let message = ToGuest::Read {
            request: 0,
            path: path.to_owned(),
            offset,
            length,
        };
        let mut frame = self.ask(message, None, "read", path).await?;
        match (frame.message, frame.blobs.pop()) {
            (FromGuest::Content { eof, stamp, .. }, Some(blob)) if blob.len() <= length => {
                Ok((blob, eof, stamp))
            }
            _ => Err(unexpected()),
        }
    }

    /// Writes a file from a reader in parts and creates its parent directories. `mode` must let the
    /// owner write, as later parts are appended.
    pub async fn write(&self, path: &str, mode: u32, mut content: impl Read + Send) -> Result<u64> {
        let mut written = 0;
        let result = self.write_parts(path, mode, &mut content, &mut written).await;
        if result.is_err() && written > 0 {
            // Half a file could be mistaken for a whole one.
            let _ = self.remove(path).await;
        }
        result.map(|()| written)
    }

    /// Writes part after part, and counts the written bytes.
    async fn write_parts(
        &self,
        path: &str,
        mode: u32,
        content: &mut (impl Read + Send),
        written: &mut u64,
    ) -> Result<()> {
        loop {
            let mut part = Vec::with_capacity(CHUNK);
            Read::take(&mut *content, CHUNK as u64)
                .read_to_end(&mut part)
                .map_err(|source| SandboxErrorKind::Io {
                    action: "read an input",
                    source,
                })?;
            let (append, last) = (*written > 0, part.len() < CHUNK);
            if append && part.is_empty() {
                return Ok(());
            }
            let length = part.len() as u64;
            let message = ToGuest::Write {
                request: 0,
                path: path.to_owned(),
                mode,
                append,
                keep: false,
                expect: None,
            };
            self.ask(message, Some(part), "write", path).await?;
            *written += length;
            if last {
                return Ok(());
            }
        }
    }

    /// Replaces or creates a file in one step, at most [`MAX_REPLACE`] bytes, with its parent
    /// directories. An existing regular file keeps its mode; anything else is rejected, and so is a
    /// file that differs from the `expected` one.
    pub async fn replace(&self, path: &str, content: Vec<u8>, expected: Option<FileStamp>) -> Result<()> {
        if content.len() > MAX_REPLACE {
            return Err(Error::request(format!(
                "replace `{path}` in the sandbox: it would have {} bytes, the limit is {MAX_REPLACE}",
                content.len()
            )));
        }
        let message = ToGuest::Write {
            request: 0,
            path: path.to_owned(),
            mode: 0o644,
            append: false,
            keep: true,
            expect: expected,
        };
        self.ask(message, Some(content), "write", path).await.map(drop)
    }

    /// Removes a file.
    pub async fn remove(&self, path: &str) -> Result<()> {
        let message = ToGuest::Remove {
            request: 0,
            path: path.to_owned(),
        };
        self.ask(message, None, "remove", path).await.map(drop)
    }

    /// Returns the usage of the sandbox's file systems.
    pub async fn disks(&self) -> Result<Vec<Disk>> {
        match self
            .ask(ToGuest::Stats { request: 0 }, None, "measure", "/")
            .await?
            .message
        {
            FromGuest::Stats { disks, .. } => Ok(disks),
            _ => Err(unexpected()),
        }
    }

    /// Runs a command.
    pub async fn run(&self, command: SandboxCommand) -> Result<RunningCommand> {
        let (sender, events) = mpsc::channel(PARTS);
        let message = ToGuest::Exec {
            exec: 0,
            argv: command.argv,
            cwd: command.cwd,
            env: command.env,
            inherit: command.inherit,
            timeout_ms: u64::try_from(command.timeout.as_millis()).unwrap_or(u64::MAX),
        };
        let number = self.send(message, None, Answer::Parts(sender)).await?;
        Ok(RunningCommand { events, number })
    }

    /// Sends SIGINT to a command, or kills it with everything that it started; its events report
    /// its end.
    pub async fn stop(&self, command: &RunningCommand, kill: bool) -> Result<()> {
        let message = ToGuest::Stop {
            exec: command.number,
            kill,
        };
        self.send(message, None, Answer::None).await.map(drop)
    }

    async fn send(&self, mut message: ToGuest, blob: Option<Vec<u8>>, answer: Answer) -> Result<u64> {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        number_message(&mut message, number);
        self.asks
            .send(Ask {
                number,
                message,
                blob,
                answer,
            })
            .await
            .map_err(|_| Error::gone("guest"))?;
        Ok(number)
    }

    async fn ask(
        &self,
        message: ToGuest,
        blob: Option<Vec<u8>>,
        action: &'static str,
        path: &str,
    ) -> Result<Frame<FromGuest>> {
        let (answer, answered) = oneshot::channel();
        self.send(message, blob, Answer::Once(answer)).await?;
        let frame = tokio::time::timeout(ANSWER_LIMIT, answered)
            .await
            .map_err(|_| SandboxErrorKind::TooLate {
                what: "the guest's answer",
                limit: ANSWER_LIMIT,
            })?
            .map_err(|_| Error::gone("guest"))?;
        match frame.message {
            FromGuest::Error { code, message, .. } => Err(SandboxErrorKind::Guest {
                action,
                path: path.to_owned(),
                code,
                reason: message,
            }
            .into()),
            _ => Ok(frame),
        }
    }
}

fn unexpected() -> Error {
    Error::protocol("guest", "it sent an unexpected response")
}

/// The task that owns a guest's channel.
#[derive(Debug)]
struct Owner {
    write: OwnedWriteHalf,
    waiting: HashMap<u64, oneshot::Sender<Frame<FromGuest>>>,
    commands: HashMap<u64, mpsc::Sender<CommandEvent>>,
    passed_on: Option<mpsc::Sender<Frame<FromGuest>>>,
}

impl Owner {
    async fn run(mut self, mut frames: FrameReader<Incoming, FromGuest>, mut queue: mpsc::Receiver<Ask>) {
        loop {
            let result = tokio::select! {
                frame = frames.next() => match frame {
                    Ok(Some(frame)) => self.hear(frame).await,
                    Ok(None) => break,
                    Err(error) => Err(error),
                },
                ask = queue.recv() => match ask {
                    Some(ask) => self.pass_on(ask).await,
                    None => break,
                },
            };
            if let Err(error) = result {
                tracing::warn!(error = &error as &dyn std::error::Error, "lost a guest");
                break;
            }
        }
        for (_, events) in self.commands.drain() {
            let _ = events.try_send(CommandEvent::Failed("the sandbox is gone".into()));
        }
    }

    async fn pass_on(&mut self, ask: Ask) -> Result<()> {
        let number = ask.number;
        match ask.answer {
            Answer::None => {}
            Answer::Once(answer) => drop(self.waiting.insert(number, answer)),
            Answer::Parts(events) => drop(self.commands.insert(number, events)),
            Answer::PassedOn(answers) => {
                self.passed_on = Some(answers);
                return Ok(());
            }
        }
        let blobs: Vec<&[u8]> = ask.blob.iter().map(Vec::as_slice).collect();
        write_frame(&mut self.write, &ask.message, &blobs).await
    }

    async fn hear(&mut self, mut frame: Frame<FromGuest>) -> Result<()> {
        if let Some(number) = answered(&mut frame.message)
            && *number & PASSED_ON != 0
        {
            *number &= !PASSED_ON;
            if let Some(answers) = &self.passed_on {
                let _ = answers.send(frame).await;
            }
            return Ok(());
        }
        match frame.message {
            FromGuest::Hello { generation } if generation == GENERATION => Ok(()),
            FromGuest::Hello { generation } => Err(Error::protocol(
                "guest",
                format!("its protocol generation is {generation}, not {GENERATION}"),
            )),
            FromGuest::Stream { exec, stream } => {
                let Some(Blob::Memory(part)) = frame.blobs.pop() else {
                    return Err(Error::protocol(
                        "guest",
                        "a part of a command's output has a missing or oversized blob",
                    ));
                };
                if let Some(events) = self.commands.get(&exec) {
                    let _ = events.send(CommandEvent::Output(stream, part)).await;
                }
                Ok(())
            }
            FromGuest::Exited {
                exec,
                code,
                signal,
                timed_out,
                leaked,
            } => {
                if let Some(events) = self.commands.remove(&exec) {
                    let _ = events
                        .send(CommandEvent::Exited {
                            code,
                            signal,
                            timed_out,
                            leaked,
                        })
                        .await;
                }
                Ok(())
            }
            FromGuest::Error {
                request, ref message, ..
            } if self.commands.contains_key(&request) => {
                if let Some(events) = self.commands.remove(&request) {
                    let _ = events.send(CommandEvent::Failed(message.clone())).await;
                }
                Ok(())
            }
            FromGuest::Files { request, .. }
            | FromGuest::Content { request, .. }
            | FromGuest::Ok { request }
            | FromGuest::Error { request, .. }
            | FromGuest::Stats { request, .. } => {
                if let Some(answer) = self.waiting.remove(&request) {
                    let _ = answer.send(frame);
                }
                Ok(())
            }
        }
    }
}

/// Sets the request number of a message, so that callers need not count.
fn number_message(message: &mut ToGuest, number: u64) {
    match message {
        ToGuest::Interrupt { .. } | ToGuest::Stop { .. } => {}
        ToGuest::Exec { exec, .. } => *exec = number,
        ToGuest::KillAll { request, .. }
        | ToGuest::List { request, .. }
        | ToGuest::Read { request, .. }
        | ToGuest::Write { request, .. }
        | ToGuest::Remove { request, .. }
        | ToGuest::Stats { request } => *request = number,
    }
}
