//! The host's side of a guest: requests and responses over one channel, owned by one task.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cellblock_protocol::{
    Blob, Disk, FileEntry, FileStamp, Frame, FrameLimits, FromGuest, GENERATION, SkippedFile, ToGuest,
    encode_before,
};
use parking_lot::{Mutex, MutexGuard};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};

use crate::channel::{FrameReader, write_parts};
use crate::error::{DuringIo, Error, Result, SandboxErrorKind};
use crate::incoming::{SocketReader, SocketWriter, split};

mod command;
mod connection;
mod snapshot;
mod write;

pub use command::{CommandEvent, GuestLink, KeptOutput, RunningCommand, SandboxCommand};
pub use connection::{SandboxConnection, SandboxListener, SandboxStream};
pub use write::MAX_REPLACE;

/// Maximum time for a guest to respond to anything but a command.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// Maximum size of a response's blob in memory: more than is ever requested, so that a full disk
/// does not end a guest.
const IN_MEMORY: u64 = 8 * 1024 * 1024;
/// Maximum number of requests that wait for the owner task.
const QUEUE: usize = 64;
/// Bit that marks the numbers of relayed requests, whose sender has its own numbers.
const PASSED_ON: u64 = 1 << 62;
/// Maximum number of unread responses to relayed requests; beyond it the guest waits.
const PASSED_BACK: usize = 2;

/// A guest. Dropping it closes its channel, which ends its room.
#[derive(Debug)]
pub struct Guest {
    asks: mpsc::Sender<GuestRequest>,
    /// Number of the last message.
    last: Arc<AtomicU64>,
}

#[derive(Debug)]
struct GuestRequest {
    number: u64,
    /// The head of its frame.
    head: Vec<u8>,
    blob: Option<Vec<u8>>,
    answer: AnswerSender,
}

impl GuestRequest {
    /// Encodes a message. One that is too large fails here, where it costs no guest.
    fn new(number: u64, message: &ToGuest, blob: Option<Vec<u8>>, answer: AnswerSender) -> Result<Self> {
        let blobs: Vec<_> = blob.iter().map(|blob| blob.len() as u64).collect();
        let head = encode_before(message, &blobs, &FrameLimits::default())
            .map_err(|error| Error::request(error.to_string()))?;
        Ok(Self {
            number,
            head,
            blob,
            answer,
        })
    }
}

#[derive(Debug)]
enum AnswerSender {
    None,
    Once(oneshot::Sender<Frame<FromGuest>>),
    Parts(mpsc::Sender<CommandEvent>),
    /// Sends nothing, but directs the responses to relayed requests to this channel.
    PassedOn(mpsc::Sender<Frame<FromGuest>>),
}

/// Relays requests of another party to a guest.
#[derive(Debug)]
pub struct Relay {
    asks: mpsc::Sender<GuestRequest>,
    /// Responses of the guest.
    pub answers: mpsc::Receiver<Frame<FromGuest>>,
}

/// Sends relayed requests.
#[derive(Clone, Debug)]
pub struct GuestRequests(mpsc::Sender<GuestRequest>);

impl Relay {
    /// Returns the sender for requests.
    pub fn requests(&self) -> GuestRequests {
        GuestRequests(self.asks.clone())
    }
}

impl GuestRequests {
    /// Relays a request; its number is repeated in the response.
    pub async fn pass_on(&self, mut message: ToGuest, blob: Option<Vec<u8>>) -> Result<()> {
        let mut number = 0;
        if let Some(place) = number_of(&mut message) {
            number = relayed(*place)?;
            *place = number;
        }
        if let ToGuest::Signal { exec: named, .. }
        | ToGuest::Input { exec: named, .. }
        | ToGuest::Resize { exec: named, .. }
        | ToGuest::Output { exec: named, .. }
        | ToGuest::Accept { listener: named, .. }
        | ToGuest::Receive {
            connection: named, ..
        }
        | ToGuest::Send {
            connection: named, ..
        } = &mut message
        {
            *named = relayed(*named)?;
        }
        let ask = GuestRequest::new(number, &message, blob, AnswerSender::None)?;
        self.0.send(ask).await.map_err(|_| Error::gone("guest"))
    }
}

/// Marks a number of another party.
fn relayed(number: u64) -> Result<u64> {
    if number >= PASSED_ON {
        let problem = format!("a request has the number {number}");
        return Err(Error::protocol("client", problem));
    }
    Ok(number | PASSED_ON)
}

/// Returns the request number of a response.
fn answered(message: &mut FromGuest) -> Option<&mut u64> {
    match message {
        FromGuest::Hello { .. } => None,
        FromGuest::Started { exec } | FromGuest::Stream { exec, .. } | FromGuest::Exited { exec, .. } => {
            Some(exec)
        }
        FromGuest::Files { request, .. }
        | FromGuest::Output { request, .. }
        | FromGuest::Ports { request, .. }
        | FromGuest::Content { request, .. }
        | FromGuest::Saved { request, .. }
        | FromGuest::Changes { request, .. }
        | FromGuest::Ok { request }
        | FromGuest::Error { request, .. }
        | FromGuest::Stats { request, .. } => Some(request),
    }
}

/// Content of a directory in the sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectoryListing {
    /// Stamp for a later call that lists only subsequent changes.
    pub stamp: u64,
    /// Regular files.
    pub files: Vec<FileEntry>,
    /// Entries that cannot be served, with reasons.
    pub skipped: Vec<SkippedFile>,
    /// Total number of regular files, including those beyond the requested number.
    pub total: u64,
}

impl Guest {
    /// Connects to a guest over a channel.
    pub fn new(channel: UnixStream) -> Result<Self> {
        let (asks, queue) = mpsc::channel(QUEUE);
        let (read, write) = split(channel).during("watch a channel")?;
        let frames = FrameReader::new(read, "guest").spilling_over(IN_MEMORY);
        tokio::spawn(own(frames, write, queue));
        Ok(Self {
            asks,
            last: Arc::default(),
        })
    }

    /// Returns whether the channel is known to have ended.
    pub fn is_gone(&self) -> bool {
        self.asks.is_closed()
    }

    /// Starts relaying requests of another party, in addition to one's own.
    pub async fn relay(&self) -> Result<Relay> {
        let (sender, answers) = mpsc::channel(PASSED_BACK);
        let message = ToGuest::Stats { request: 0 };
        self.send(message, None, AnswerSender::PassedOn(sender)).await?;
        Ok(Relay {
            asks: self.asks.clone(),
            answers,
        })
    }

    /// Sends SIGINT to a process of the sandbox.
    pub async fn interrupt(&self, pid: u32) -> Result<()> {
        self.send(ToGuest::Interrupt { pid }, None, AnswerSender::None)
            .await
            .map(drop)
    }

    /// Kills every process except the guest; files stay.
    pub async fn kill_all(&self) -> Result<()> {
        self.kill_all_but(&[]).await
    }

    /// Kills every process except the guest and some others; files stay.
    pub async fn kill_all_but(&self, pids: &[u32]) -> Result<()> {
        self.ask(
            ToGuest::KillAll {
                request: 0,
                except: pids.to_vec(),
            },
            None,
            "end the processes below",
            "/",
        )
        .await
        .map(drop)
    }

    /// Lists regular files below `root` that changed since an earlier stamp.
    pub async fn list(&self, root: &str, since: Option<u64>, max_files: u32) -> Result<DirectoryListing> {
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
                Ok(DirectoryListing {
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

    async fn send(&self, message: ToGuest, blob: Option<Vec<u8>>, answer: AnswerSender) -> Result<u64> {
        send(&self.asks, &self.last, message, blob, answer).await
    }

    async fn ask(
        &self,
        message: ToGuest,
        blob: Option<Vec<u8>>,
        action: &'static str,
        path: &str,
    ) -> Result<Frame<FromGuest>> {
        let answered = self.request(message, blob).await?;
        answered_within(answered, ANSWER_LIMIT, action, path).await
    }

    /// Sends a request, and returns where its answer will arrive.
    async fn request(
        &self,
        message: ToGuest,
        blob: Option<Vec<u8>>,
    ) -> Result<oneshot::Receiver<Frame<FromGuest>>> {
        let (answer, answered) = oneshot::channel();
        self.send(message, blob, AnswerSender::Once(answer)).await?;
        Ok(answered)
    }
}

/// Numbers a message and hands it to the task that owns the channel.
async fn send(
    asks: &mpsc::Sender<GuestRequest>,
    last: &AtomicU64,
    mut message: ToGuest,
    blob: Option<Vec<u8>>,
    answer: AnswerSender,
) -> Result<u64> {
    let number = last.fetch_add(1, Ordering::Relaxed) + 1;
    // The number of a stop is that of its command.
    if let Some(place) = number_of(&mut message).filter(|place| **place == 0) {
        *place = number;
    }
    let ask = GuestRequest::new(number, &message, blob, answer)?;
    asks.send(ask).await.map_err(|_| Error::gone("guest"))?;
    Ok(number)
}

/// Waits for an answer; a refusal of the guest is an error.
async fn answered_within(
    answered: oneshot::Receiver<Frame<FromGuest>>,
    limit: Duration,
    action: &'static str,
    path: &str,
) -> Result<Frame<FromGuest>> {
    let frame = tokio::time::timeout(limit, answered)
        .await
        .map_err(|_| SandboxErrorKind::TooLate {
            what: "the guest's answer",
            limit,
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

fn unexpected() -> Error {
    Error::protocol("guest", "it sent an unexpected response")
}

/// Receiver that waits for messages of a guest.
#[derive(Debug, Default)]
struct GuestWaiters {
    answers: HashMap<u64, oneshot::Sender<Frame<FromGuest>>>,
    commands: HashMap<u64, mpsc::Sender<CommandEvent>>,
    passed_on: Option<mpsc::Sender<Frame<FromGuest>>>,
}

/// The task that owns a guest's channel. It reads and writes at the same time: a guest that is
/// answering at length takes nothing in meanwhile, and would wait for ever for a host that writes.
async fn own(
    mut frames: FrameReader<SocketReader, FromGuest>,
    mut write: SocketWriter,
    mut queue: mpsc::Receiver<GuestRequest>,
) {
    let waiting = Mutex::default();
    let read = async {
        while let Some(frame) = frames.next().await? {
            hear(&waiting, frame).await?;
        }
        Ok(())
    };
    let written = async {
        while let Some(ask) = queue.recv().await {
            pass_on(&waiting, ask, &mut write).await?;
        }
        Ok(())
    };
    let result: Result<()> = tokio::select! {
        read = read => read,
        written = written => written,
    };
    if let Err(error) = result {
        tracing::warn!(error = &error as &dyn std::error::Error, "lost a guest");
    }
    for (_, events) in lock(&waiting).commands.drain() {
        let _ = events.try_send(CommandEvent::Failed("the sandbox is gone".into()));
    }
}

/// Locks what waits; never held while something is awaited.
fn lock(waiting: &Mutex<GuestWaiters>) -> MutexGuard<'_, GuestWaiters> {
    waiting.lock()
}

async fn pass_on(waiting: &Mutex<GuestWaiters>, ask: GuestRequest, write: &mut SocketWriter) -> Result<()> {
    let number = ask.number;
    match ask.answer {
        AnswerSender::None => {}
        AnswerSender::Once(answer) => drop(lock(waiting).answers.insert(number, answer)),
        AnswerSender::Parts(events) => drop(lock(waiting).commands.insert(number, events)),
        AnswerSender::PassedOn(answers) => {
            lock(waiting).passed_on = Some(answers);
            return Ok(());
        }
    }
    let parts = [&ask.head].into_iter().chain(&ask.blob);
    write_parts(write, parts.map(Vec::as_slice).collect()).await
}

async fn hear(waiting: &Mutex<GuestWaiters>, mut frame: Frame<FromGuest>) -> Result<()> {
    if let Some(number) = answered(&mut frame.message)
        && *number & PASSED_ON != 0
    {
        *number &= !PASSED_ON;
        let answers = lock(waiting).passed_on.clone();
        if let Some(answers) = answers {
            let _ = answers.send(frame).await;
        }
        return Ok(());
    }
    let (command, event) = match frame.message {
        FromGuest::Hello { generation } if generation == GENERATION => return Ok(()),
        FromGuest::Hello { generation } => {
            return Err(Error::protocol(
                "guest",
                format!("its protocol generation is {generation}, not {GENERATION}"),
            ));
        }
        FromGuest::Started { exec } => (lock(waiting).commands.get(&exec).cloned(), CommandEvent::Started),
        FromGuest::Stream { exec, stream } => {
            let Some(Blob::Memory(part)) = frame.blobs.pop() else {
                return Err(Error::protocol(
                    "guest",
                    "a part of a command's output has a missing or oversized blob",
                ));
            };
            let command = lock(waiting).commands.get(&exec).cloned();
            (command, CommandEvent::Output(stream, part))
        }
        FromGuest::Exited {
            exec,
            code,
            signal,
            timed_out,
            leaked,
        } => {
            let ended = CommandEvent::Exited {
                code,
                signal,
                timed_out,
                leaked,
            };
            (lock(waiting).commands.remove(&exec), ended)
        }
        FromGuest::Error {
            request, ref message, ..
        } if lock(waiting).commands.contains_key(&request) => {
            let failed = CommandEvent::Failed(message.clone());
            (lock(waiting).commands.remove(&request), failed)
        }
        FromGuest::Files { request, .. }
        | FromGuest::Output { request, .. }
        | FromGuest::Ports { request, .. }
        | FromGuest::Content { request, .. }
        | FromGuest::Saved { request, .. }
        | FromGuest::Changes { request, .. }
        | FromGuest::Ok { request }
        | FromGuest::Error { request, .. }
        | FromGuest::Stats { request, .. } => {
            if let Some(answer) = lock(waiting).answers.remove(&request) {
                let _ = answer.send(frame);
            }
            return Ok(());
        }
    };
    if let Some(command) = command {
        let _ = command.send(event).await;
    }
    Ok(())
}

/// Returns the number of a message that the guest repeats, or that names a command.
fn number_of(message: &mut ToGuest) -> Option<&mut u64> {
    match message {
        ToGuest::Interrupt { .. } | ToGuest::KillStopped => None,
        ToGuest::Exec { exec: named, .. }
        | ToGuest::Stop { exec: named, .. }
        | ToGuest::Forget { exec: named }
        | ToGuest::HangUp { connection: named } => Some(named),
        ToGuest::KillAll { request, .. }
        | ToGuest::Signal { request, .. }
        | ToGuest::Input { request, .. }
        | ToGuest::Resize { request, .. }
        | ToGuest::Output { request, .. }
        | ToGuest::Ports { request }
        | ToGuest::Connect { request, .. }
        | ToGuest::Listen { request, .. }
        | ToGuest::Accept { request, .. }
        | ToGuest::Receive { request, .. }
        | ToGuest::Send { request, .. }
        | ToGuest::List { request, .. }
        | ToGuest::Read { request, .. }
        | ToGuest::Write { request, .. }
        | ToGuest::Remove { request, .. }
        | ToGuest::Save { request, .. }
        | ToGuest::Restore { request, .. }
        | ToGuest::RollBack { request, .. }
        | ToGuest::Changes { request, .. }
        | ToGuest::ReadSnapshot { request, .. }
        | ToGuest::WriteSnapshot { request, .. }
        | ToGuest::Discard { request, .. }
        | ToGuest::Stats { request } => Some(request),
    }
}
