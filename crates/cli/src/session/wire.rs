//! Protocol between commands and hosts: one question per connection, its answer, and output while it is
//! worked on.
//!
//! A frame is a byte for its kind, four for its length (little endian), and its bytes: JSON, or a
//! piece of a stream as it came.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use cellblock_interpreter::session::checkpoints::tries::{DecidedTry, TryChanges};
use cellblock_interpreter::session::checkpoints::{Checkpoint, NewCheckpoint, RolledBack};
use cellblock_interpreter::session::hibernate::HibernationSummary;
use cellblock_interpreter::session::processes::{ProcessReport, TerminalSize};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::plan::{SessionDataset, SessionPlan, WarmPlan};
use crate::exit_code::ExitCode;
use crate::session_error::{MAX_MESSAGE, WireError};

/// Counts up when a command could not understand the host of another program version.
pub(crate) const GENERATION: u32 = 1;

const MESSAGE: u8 = b'm';
const STDOUT: u8 = b'o';
const STDERR: u8 = b'e';

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HostFrame {
    /// A message as JSON.
    Message(Vec<u8>),
    /// A command in the sandbox wrote this to stdout.
    Stdout(Vec<u8>),
    /// Likewise to stderr.
    Stderr(Vec<u8>),
}

/// A request, and the generation of the client that sends it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HostRequest {
    pub(crate) generation: u32,
    /// Read only where the generation is ours.
    pub(crate) ask: Value,
}

/// Request of a command.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum HostCommand {
    /// To know how the session is.
    Describe,
    /// A tool called.
    Call {
        tool: String,
        arguments: Value,
        /// Whether output is wanted while it comes.
        watch: bool,
    },
    /// The section of a system prompt for this session.
    Prompt,
    /// Something about processes beside tools.
    Process { what: ProcessAsk },
    /// A cell run, or something about checkpoints, in its turn.
    Session { what: SessionAsk },
    /// A file to appear in `/tmp/data`.
    AddDataset { dataset: SessionDataset },
    /// A sandbox of a warm host. Once accepted, the connection carries the messages of `cellblock_remote`.
    Sandbox,
    /// The host's end; answered when all is given back.
    Stop,
}

/// Request of a command about the processes of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum ProcessAsk {
    /// A program started.
    Start {
        command: Vec<String>,
        env: BTreeMap<String, String>,
        directory: Option<String>,
        stdin: bool,
        terminal: Option<TerminalSize>,
    },
    /// To know which there are.
    List,
    /// Output from an offset, waited for so long.
    Output { id: String, offset: u64, wait: Duration },
    /// Bytes for the standard input, and its end.
    Input { id: String, bytes: Vec<u8>, close: bool },
    /// Another size of the terminal.
    Resize { id: String, size: TerminalSize },
    /// A signal sent.
    Signal { id: String, signal: String },
    /// To wait for the end, so long.
    Wait { id: String, limit: Duration },
}

/// Request of a command about the kernel of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum SessionAsk {
    /// A cell run.
    Run { code: String, timeout: Option<Duration> },
    /// A checkpoint made.
    Checkpoint { name: Option<String> },
    /// To know which checkpoints there are.
    Checkpoints,
    /// The state of a checkpoint back.
    RollBack { checkpoint: String },
    /// A checkpoint dropped; answered with the others.
    DropCheckpoint { checkpoint: String },
    /// A cell tried.
    Try { code: String, timeout: Option<Duration> },
    /// The try kept, or discarded.
    DecideTry { keep: bool },
    /// Its processes given back.
    Hibernate,
    /// Independent sessions that begin with this one's state.
    Fork { count: usize, reseed: bool },
}

/// Answer of a host.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub(crate) enum HostAnswer {
    /// The question was understood; other answers follow.
    Accepted,
    /// State of the session.
    Description { description: Box<Description> },
    /// State of the warm host.
    Warm { state: Box<WarmState> },
    /// The section of a system prompt.
    Prompt { text: String },
    /// Result of the tool.
    Result { result: Value },
    /// A picture was saved; more answers follow.
    Visualization { path: PathBuf, media_type: String },
    /// Processes: all of them, or the one in question.
    Processes { processes: Vec<ProcessReport> },
    /// State of a process's output; the output itself came before, as stdout.
    ProcessOutput { next: u64, lost: u64, eof: bool },
    /// Result of a cell.
    Ran { ran: Box<RanSessionCell> },
    /// Result of a cell that was tried, and its changes.
    Tried {
        ran: Box<RanSessionCell>,
        changes: Box<TryChanges>,
        undecided: bool,
    },
    /// The try was decided.
    DecidedTry { decided: DecidedTry },
    /// The new checkpoint.
    Checkpoint { kept: Box<NewCheckpoint> },
    /// The checkpoints that there are.
    Checkpoints { checkpoints: Vec<Checkpoint> },
    /// The session is as it was at the checkpoint.
    RolledBack { back: Box<RolledBack> },
    /// Parts of the session that were lost.
    Hibernated { lost: HibernationSummary },
    /// The forks.
    Forked { ids: Vec<String> },
    /// Path of the dataset.
    AddedDataset { added: AddedDataset },
    /// The host has given everything back.
    Stopped,
    /// It could not be done.
    Failure { failure: WireError },
}

/// State of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Description {
    /// The host's process.
    pub(crate) process: u32,
    /// The session's plan.
    pub(crate) plan: SessionPlan,
    /// Number of calls that were made.
    pub(crate) calls: u64,
    /// Number of calls that are running.
    pub(crate) running: usize,
    /// For how many seconds nothing was asked of it.
    pub(crate) idle_seconds: f64,
}

/// State of a warm host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct WarmState {
    /// Process id of the host.
    pub(crate) process: u32,
    /// The host's plan.
    pub(crate) plan: WarmPlan,
    /// Number of sandboxes that are ready to be taken.
    pub(crate) ready: usize,
    /// Number of clients that have a sandbox.
    pub(crate) running: usize,
    /// Seconds since a client last had a sandbox.
    pub(crate) idle_seconds: f64,
    /// Memory of the host and everything below it in bytes, with shared pages divided among their
    /// users; `None` if the system does not report it.
    pub(crate) memory_bytes: Option<u64>,
}

/// A cell that has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RanSessionCell {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// Its outputs as text.
    pub(crate) outputs: Vec<String>,
    /// Parts that were left out, and the end of the cell.
    pub(crate) notes: Vec<String>,
    /// Exit code of `session run`.
    pub(crate) code: ExitCode,
}

/// Location of a dataset in the sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AddedDataset {
    /// The path in the sandbox.
    pub(crate) path: String,
    /// Notes for the user, such as a name that was taken.
    pub(crate) notes: Vec<String>,
}

/// Writes a frame.
pub(crate) async fn send(to: &mut (impl AsyncWrite + Unpin), frame: &HostFrame) -> io::Result<()> {
    let (kind, bytes) = match frame {
        HostFrame::Message(bytes) => (MESSAGE, bytes),
        HostFrame::Stdout(bytes) => (STDOUT, bytes),
        HostFrame::Stderr(bytes) => (STDERR, bytes),
    };
    let length = u32::try_from(bytes.len())
        .ok()
        .filter(|_| bytes.len() <= MAX_MESSAGE)
        .ok_or(io::ErrorKind::FileTooLarge)?;
    let mut head = [kind, 0, 0, 0, 0];
    head[1..].copy_from_slice(&length.to_le_bytes());
    to.write_all(&head).await?;
    to.write_all(bytes).await?;
    to.flush().await
}

/// Writes a message.
pub(crate) async fn tell(to: &mut (impl AsyncWrite + Unpin), message: &impl Serialize) -> io::Result<()> {
    send(to, &HostFrame::Message(serde_json::to_vec(message)?)).await
}

/// Reads a frame; `None` where the other side has ended. Memory is taken as bytes come, not as
/// their number is announced.
pub(crate) async fn receive(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<HostFrame>> {
    let mut head = [0; 5];
    if let Err(error) = from.read_exact(&mut head).await {
        return match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => Ok(None),
            _ => Err(error),
        };
    }
    let [kind, a, b, c, d] = head;
    let length = u32::from_le_bytes([a, b, c, d]);
    let wrong = |problem: String| io::Error::new(io::ErrorKind::InvalidData, problem);
    if u64::from(length) > MAX_MESSAGE as u64 {
        return Err(wrong(format!(
            "a frame has {length} bytes, the limit is {MAX_MESSAGE}"
        )));
    }
    let mut bytes = Vec::new();
    let count = from.take(u64::from(length)).read_to_end(&mut bytes).await?;
    if count < length as usize {
        return Ok(None);
    }
    match kind {
        MESSAGE => Ok(Some(HostFrame::Message(bytes))),
        STDOUT => Ok(Some(HostFrame::Stdout(bytes))),
        STDERR => Ok(Some(HostFrame::Stderr(bytes))),
        other => Err(wrong(format!("a frame is of the unknown kind {other}"))),
    }
}

/// Reads what a message says.
pub(crate) fn read<T: DeserializeOwned>(message: &[u8]) -> io::Result<T> {
    Ok(serde_json::from_slice(message)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn received(bytes: &[u8]) -> io::Result<Option<HostFrame>> {
        receive(&mut &bytes[..]).await
    }

    #[tokio::test]
    async fn frames_are_read_as_they_were_written() {
        let mut bytes = Vec::new();
        let frames = [
            HostFrame::Message(b"{}".to_vec()),
            HostFrame::Stdout(vec![0, 255, 10]),
            HostFrame::Stderr(Vec::new()),
        ];
        for frame in &frames {
            send(&mut bytes, frame).await.unwrap();
        }
        let mut from = &bytes[..];
        for frame in frames {
            assert_eq!(receive(&mut from).await.unwrap(), Some(frame));
        }
        assert_eq!(receive(&mut from).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_frame_that_is_cut_is_the_end_of_the_other_side() {
        assert_eq!(received(b"m\x05\0\0\0abc").await.unwrap(), None);
        assert_eq!(received(b"m\x05").await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_frame_beyond_the_limit_or_of_no_kind_is_refused() {
        let error = received(b"m\xff\xff\xff\xff").await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("a frame has 4294967295 bytes, the limit is {MAX_MESSAGE}")
        );
        let error = received(b"x\0\0\0\0").await.unwrap_err();
        assert_eq!(error.to_string(), "a frame is of the unknown kind 120");
    }

    #[test]
    fn an_ask_with_a_field_too_many_is_refused() {
        let ask = |text: &str| read::<HostCommand>(text.as_bytes());
        assert_eq!(ask(r#"{"do":"stop"}"#).unwrap(), HostCommand::Stop);
        for text in [
            r#"{"do":"leave"}"#,
            r#"{"do":"call","tool":"t","arguments":{},"watch":true,"as":"root"}"#,
            r#"{"do":"call"}"#,
            "[]",
        ] {
            assert!(ask(text).is_err(), "{text}");
        }
    }
}
