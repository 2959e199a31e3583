//! Processes beside cells: programs that run in a session's sandbox until they end or the session does.
//!
//! They share the sandbox's limits, and cells neither wait for them nor end them. The guest keeps
//! their output (`guest/init/log.rs`), so that one that writes without end costs the host nothing.
//!
//! ```text
//! Session ── start ──> the session's task: makes sure that there is a sandbox, once
//!    └── start, list, output, input, signal, wait ──> Table ── GuestLink ──> guest      (also while a cell runs)
//! ```

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use cellblock_sandbox::guest::{GuestLink, SandboxCommand};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::error::{Error, Result};
pub use crate::process_error::{MAX_INPUT, MAX_RUNNING, ProcessError};
use crate::session::Session;
pub use cellblock_protocol::{Stream as ProcessStream, TerminalSize};

mod aside;
mod attach;
mod reader;
mod refused;
mod signal;
mod table;
pub mod terminal;

pub use aside::AsideProgram;
pub use reader::ProcessReader;
pub use signal::ProcessSignal;
pub(super) use table::Table;

use refused::refused;

/// Maximum number of ended processes of a session whose output is kept; the oldest are dropped first.
pub const MAX_ENDED: usize = 64;
/// Maximum number of bytes of output in one answer.
pub const MAX_OUTPUT: u64 = 1 << 20;
/// Maximum duration for which one request waits for output, or for a process to end.
pub const MAX_WAIT: Duration = Duration::from_mins(1);

/// Maximum number of rows, and of columns, of a terminal.
pub const MAX_TERMINAL: u16 = 4096;

/// Maximum size in bytes of a command with its environment.
const MAX_COMMAND: usize = 128 * 1024;
/// Working directory, unless another is named.
const DIRECTORY: &str = "/workspace";
/// Directory of the sandbox with the files of output.
const OUTPUTS: &str = "/tmp/.cellblock";
/// Kind of terminal, unless another is named; all that are in use understand it.
const TERM: &str = "xterm-256color";
/// Maximum time that input waits for room.
const INPUT_LIMIT: Duration = Duration::from_secs(10);
/// Pause between attempts to find room for input.
const PAUSE: Duration = Duration::from_millis(20);

/// A program to start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessOrder {
    /// The program and its arguments; a bare name is searched along `PATH`.
    pub command: Vec<String>,
    /// Environment variables, in addition to those of the sandbox's commands.
    pub env: BTreeMap<String, String>,
    /// Working directory; by default `/workspace`.
    pub directory: Option<String>,
    /// Whether it reads input that is sent later; otherwise its standard input is empty.
    pub stdin: bool,
    /// Size of a terminal for it, with its standard input, output and error stream. Its `TERM` is
    /// `xterm-256color` unless `env` has another.
    pub terminal: Option<TerminalSize>,
}

/// State of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProcessState {
    /// It is running.
    #[default]
    Running,
    /// It exited.
    Exited,
    /// A signal killed it.
    Killed,
    /// It ended with its sandbox, and its output is gone.
    Lost,
}

/// A process of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessReport {
    /// Its ID in the session, such as `p1`.
    pub id: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its state.
    pub state: ProcessState,
    /// Exit code, if it exited.
    pub exit_code: Option<i32>,
    /// Name of the signal that killed it, such as `SIGTERM`.
    pub signal: Option<String>,
    /// Whether it was started with an open standard input.
    pub stdin: bool,
    /// Whether it was started with a terminal.
    pub terminal: bool,
    /// Time of its start, in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// Time of its end, in milliseconds since 1970.
    pub ended_unix_ms: Option<u64>,
    /// File of the sandbox with the first 16 MiB of its output.
    pub output_file: String,
}

/// Part of a process's output: what it wrote to stdout and stderr, in one sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessOutput {
    /// Offset of the first byte.
    pub offset: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Offset from which to read on.
    pub next: u64,
    /// Number of bytes between the requested offset and the first byte, which are neither in memory
    /// nor in the file.
    pub lost: u64,
    /// Number of bytes that it has written until now.
    pub total: u64,
    /// Whether it has ended and these are its last bytes.
    pub eof: bool,
    /// Ranges of the bytes from stderr, in ascending order. Of a process that has alternated thousands of
    /// times between its streams, the oldest bytes count as those of stdout; a terminal has only one stream.
    pub stderr: Vec<Range<usize>>,
}

impl ProcessReport {
    /// Returns its state in words, such as `exited with code 3`.
    pub fn state_in_words(&self) -> String {
        match (self.state, self.exit_code, &self.signal) {
            (ProcessState::Running, ..) => "running".to_owned(),
            (ProcessState::Exited, Some(code), _) => format!("exited with code {code}"),
            (ProcessState::Killed, _, Some(signal)) => format!("killed by {signal}"),
            (ProcessState::Lost, ..) => "ended with its sandbox".to_owned(),
            (ProcessState::Exited | ProcessState::Killed, ..) => "ended".to_owned(),
        }
    }
}

impl ProcessOutput {
    /// Returns the bytes with their streams, in their order.
    pub fn parts(&self) -> impl Iterator<Item = (ProcessStream, &[u8])> {
        let bounds = self.stderr.iter().flat_map(|part| [part.start, part.end]);
        let mut from = 0;
        let streams = [ProcessStream::Stdout, ProcessStream::Stderr].into_iter().cycle();
        let parts = bounds
            .chain([self.bytes.len()])
            .zip(streams)
            .map(move |(to, stream)| {
                let part = self.bytes.get(from..to).unwrap_or_default();
                from = to;
                (stream, part)
            });
        parts.filter(|(_, part)| !part.is_empty())
    }

    /// Returns the bytes as text. A character that is not complete yet is left for the next read;
    /// bytes that are not UTF-8 are replaced.
    pub fn into_text(mut self) -> (String, u64) {
        if !self.eof {
            let whole = crate::session::runtime::kept::whole_start(&self.bytes).len();
            // Four bytes cannot be the beginning of one character.
            if whole > 0 || self.bytes.len() >= 4 {
                self.next -= (self.bytes.len() - whole) as u64;
                self.bytes.truncate(whole);
            }
        }
        (String::from_utf8_lossy(&self.bytes).into_owned(), self.next)
    }
}

/// The processes of a session.
#[derive(Clone, Copy, Debug)]
pub struct Processes<'a>(&'a Session);

impl Session {
    /// Returns its processes. They can be used while a cell runs.
    pub const fn processes(&self) -> Processes<'_> {
        Processes(self)
    }
}

impl Processes<'_> {
    /// Starts a program beside cells. It runs until it ends, or the session is reset or ends.
    pub async fn start(self, order: ProcessOrder) -> Result<ProcessReport> {
        order.check()?;
        if self.0.guarded {
            return Err(ProcessError::Guarded.into());
        }
        let table = &self.0.table;
        let link = match table.link()? {
            Some(link) => link,
            None => self.0.attach().await?,
        };
        table.forget_oldest().await;
        let (id, seat) = table.reserve(&order, &link)?;
        let mut env = table.environment(&order.env);
        if order.terminal.is_some() && !order.env.contains_key("TERM") {
            env.insert("TERM".to_owned(), TERM.to_owned());
        }
        let command = SandboxCommand {
            argv: order.command,
            cwd: order.directory.unwrap_or_else(|| DIRECTORY.to_owned()),
            env,
            inherit: true,
            timeout: Duration::MAX,
            input: order.stdin,
            keep: Some(output_file(&id)),
            terminal: order.terminal,
        };
        // In a task of its own: a process of whose start nobody hears any more is listed all the same.
        let starting = tokio::spawn(async move {
            let running = link.start(command).await?;
            seat.taken(running);
            Ok(())
        });
        let started = starting.await.expect("starting a process does not panic");
        started.map_err(|error| refused(&id, error))?;
        table.report(&id)
    }

    /// Returns the processes in the order of their starts: those that run, and the last ones that have ended.
    pub fn list(self) -> Vec<ProcessReport> {
        self.0.table.list()
    }

    /// Reads at most `length` bytes of a process's output, from an offset. If there is none yet,
    /// waits for it up to `wait`.
    pub async fn output(self, id: &str, offset: u64, length: u64, wait: Duration) -> Result<ProcessOutput> {
        let (link, number) = self.reach(id)?;
        let length = length.min(MAX_OUTPUT);
        let read = link.output(number, offset, length, wait.min(MAX_WAIT)).await;
        self.0.table.touch();
        let read = read.map_err(|error| refused(id, error))?;
        Ok(ProcessOutput {
            next: read.offset + read.bytes.len() as u64,
            lost: read.offset.saturating_sub(offset),
            offset: read.offset,
            bytes: read.bytes,
            total: read.total,
            eof: read.eof,
            stderr: read.stderr,
        })
    }

    /// Sends bytes to a process's standard input, all of them or none, and ends the input after
    /// them if `close` is set. Completes when they are queued in the sandbox.
    pub async fn input(self, id: &str, bytes: &[u8], close: bool) -> Result<()> {
        if bytes.len() > MAX_INPUT {
            let (id, bytes) = (id.to_owned(), bytes.len());
            return Err(ProcessError::InputTooLarge { id, bytes }.into());
        }
        let (link, number) = self.reach(id)?;
        let deadline = Instant::now() + INPUT_LIMIT;
        loop {
            match link.input(number, bytes.to_vec(), close).await {
                Ok(()) => return Ok(()),
                Err(error) if is_full(&error) && Instant::now() < deadline => tokio::time::sleep(PAUSE).await,
                Err(error) => return Err(refused(id, error)),
            }
        }
    }

    /// Sends a signal to a process and the others of its process group. SIGKILL also ends
    /// everything else that it started.
    pub async fn signal(self, id: &str, signal: ProcessSignal) -> Result<()> {
        let (link, number) = self.reach(id)?;
        let sent = link.signal(number, signal.number()).await;
        sent.map_err(|error| refused(id, error))
    }

    /// Changes the size of a process's terminal; its foreground programs get SIGWINCH.
    pub async fn resize(self, id: &str, size: TerminalSize) -> Result<()> {
        check_size(size)?;
        let (link, number) = self.reach(id)?;
        let resized = link.resize(number, size).await;
        resized.map_err(|error| refused(id, error))
    }

    /// Waits up to `limit` for a process to end; returns its state then.
    pub async fn wait(self, id: &str, limit: Duration) -> Result<ProcessReport> {
        self.0.table.wait(id, limit.min(MAX_WAIT)).await
    }

    fn reach(self, id: &str) -> Result<(GuestLink, u64)> {
        self.0.table.reach(id)
    }
}

impl ProcessOrder {
    /// Rejects what cannot be started.
    fn check(&self) -> Result<()> {
        if let Some(size) = self.terminal {
            check_size(size)?;
        }
        if self.command.first().is_none_or(String::is_empty) {
            return wrong("command", "name a program".to_owned());
        }
        for name in self.env.keys() {
            if name.is_empty() || name.contains('=') {
                return wrong("env", format!("`{name}` is not the name of a variable"));
            }
        }
        let pairs = self.env.iter().flat_map(|(name, value)| [name, value]);
        let texts: Vec<_> = self.command.iter().chain(pairs).chain(&self.directory).collect();
        if texts.iter().any(|text| text.contains('\0')) {
            return wrong("command", "it contains a NUL character".to_owned());
        }
        let bytes: usize = texts.iter().map(|text| text.len()).sum();
        if bytes > MAX_COMMAND {
            let reason = format!("it has {bytes} bytes with its environment, the limit is {MAX_COMMAND}");
            return wrong("command", reason);
        }
        match &self.directory {
            Some(directory) if !directory.starts_with('/') => {
                wrong("directory", format!("`{directory}` is not an absolute path"))
            }
            _ => Ok(()),
        }
    }
}

/// Returns so many seconds as a time to wait; `None` if it is negative, not finite, or more than
/// [`MAX_WAIT`].
pub fn wait_of(seconds: f64) -> Option<Duration> {
    let wait = Duration::try_from_secs_f64(seconds).ok()?;
    (wait <= MAX_WAIT).then_some(wait)
}

fn check_size(size: TerminalSize) -> Result<()> {
    for (name, count) in [("rows", size.rows), ("columns", size.columns)] {
        if !(1..=MAX_TERMINAL).contains(&count) {
            let reason = format!("`{count}` {name} are not between 1 and {MAX_TERMINAL}");
            return wrong("terminal", reason);
        }
    }
    Ok(())
}

fn wrong(name: &'static str, reason: String) -> Result<()> {
    Err(Error::Argument {
        name,
        missing: false,
        reason,
    })
}

/// The file that keeps a process's output.
fn output_file(id: &str) -> String {
    format!("{OUTPUTS}/{id}.log")
}

fn is_full(error: &cellblock_sandbox::Error) -> bool {
    matches!(error.guest_refusal(), Some(("full", _)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(bytes: &[u8], eof: bool) -> ProcessOutput {
        ProcessOutput {
            offset: 10,
            bytes: bytes.to_vec(),
            next: 10 + bytes.len() as u64,
            lost: 0,
            total: 100,
            eof,
            stderr: Vec::new(),
        }
    }

    #[test]
    fn output_is_told_apart_by_its_streams_in_its_order() {
        use ProcessStream::{Stderr, Stdout};

        let mixed = |stderr: &[Range<usize>]| -> Vec<(ProcessStream, String)> {
            let output = ProcessOutput {
                stderr: stderr.to_vec(),
                ..output(b"abcdef", false)
            };
            let text = |part: &[u8]| String::from_utf8_lossy(part).into_owned();
            output
                .parts()
                .map(|(stream, part)| (stream, text(part)))
                .collect()
        };
        let told = |parts: &[(ProcessStream, &str)]| -> Vec<_> {
            parts
                .iter()
                .map(|(stream, text)| (*stream, (*text).to_owned()))
                .collect()
        };
        assert_eq!(mixed(&[]), told(&[(Stdout, "abcdef")]));
        assert_eq!(mixed(std::slice::from_ref(&(0..6))), told(&[(Stderr, "abcdef")]));
        let parts = told(&[(Stdout, "a"), (Stderr, "bc"), (Stdout, "de"), (Stderr, "f")]);
        assert_eq!(mixed(&[1..3, 5..6]), parts);
    }

    #[test]
    fn a_character_that_is_cut_is_read_the_next_time() {
        assert_eq!(output("aé".as_bytes(), false).into_text(), ("aé".to_owned(), 13));
        assert_eq!(output(b"a\xc3", false).into_text(), ("a".to_owned(), 11));
        assert_eq!(output(b"a\xc3", true).into_text(), ("a\u{fffd}".to_owned(), 12));
        assert_eq!(output(b"\xff\xff\xff\xff", false).into_text().1, 14);
    }

    #[test]
    fn an_order_that_cannot_be_started_names_the_argument() {
        let order = |command: &[&str]| ProcessOrder {
            command: command.iter().map(|&it| it.to_owned()).collect(),
            ..ProcessOrder::default()
        };
        order(&["sleep", "1"]).check().unwrap();
        let long = "x".repeat(MAX_COMMAND);
        for wrong in [
            order(&[]),
            order(&[""]),
            order(&["a", "b\0"]),
            order(&["a", &long]),
        ] {
            let error = wrong.check().unwrap_err().to_string();
            assert!(error.starts_with("`command`: "), "{error}");
        }
        let mut wrong = order(&["a"]);
        wrong.env.insert("A=B".to_owned(), String::new());
        assert_eq!(
            wrong.check().unwrap_err().to_string(),
            "`env`: `A=B` is not the name of a variable"
        );
        let wrong = ProcessOrder {
            directory: Some("work".to_owned()),
            ..order(&["a"])
        };
        assert_eq!(
            wrong.check().unwrap_err().to_string(),
            "`directory`: `work` is not an absolute path"
        );
        let wrong = ProcessOrder {
            terminal: Some(TerminalSize { rows: 0, columns: 80 }),
            ..order(&["a"])
        };
        assert_eq!(
            wrong.check().unwrap_err().to_string(),
            "`terminal`: `0` rows are not between 1 and 4096"
        );
    }
}
