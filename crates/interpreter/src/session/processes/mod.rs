//! Processes beside cells: programs that run in a session's sandbox until they end or the session does.
//!
//! They share the sandbox's limits, and cells neither wait for them nor end them. The guest keeps
//! their output (`guest/init/log.rs`), so that one that writes without end costs the host nothing.
//!
//! ```text
//! Session ── start ──> the session's task: makes sure that there is a sandbox, once
//!    └── start, list, output, input, signal, wait ──> Table ── GuestLink ──> guest      (also while a cell runs)
//! ```

use std::time::Duration;

use cellblock_sandbox::guest::{GuestLink, SandboxCommand};
use tokio::time::Instant;

use crate::error::Result;
pub use crate::process_error::{MAX_INPUT, MAX_RUNNING, ProcessError};
use crate::session::Session;
pub use cellblock_protocol::{Stream as ProcessStream, TerminalSize};

mod aside;
mod attach;
mod process;
mod reader;
mod refused;
mod signal;
mod table;
pub mod terminal;

pub use aside::AsideProgram;
pub use process::{MAX_TERMINAL, ProcessOrder, ProcessOutput, ProcessReport, ProcessState};
pub use reader::ProcessReader;
pub use signal::ProcessSignal;
pub use table::MAX_ENDED;
pub(super) use table::Table;

use process::{check_size, output_file};
use refused::refused;

/// Maximum number of bytes of output in one answer.
pub const MAX_OUTPUT: u64 = 1 << 20;
/// Maximum duration for which one request waits for output, or for a process to end.
pub const MAX_WAIT: Duration = Duration::from_mins(1);

/// Working directory, unless another is named.
const DIRECTORY: &str = "/workspace";
/// Kind of terminal, unless another is named; all that are in use understand it.
const TERM: &str = "xterm-256color";
/// Maximum time that input waits for room.
const INPUT_LIMIT: Duration = Duration::from_secs(10);
/// Pause between attempts to find room for input.
const PAUSE: Duration = Duration::from_millis(20);

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

/// Returns so many seconds as a time to wait; `None` if it is negative, not finite, or more than
/// [`MAX_WAIT`].
pub fn wait_of(seconds: f64) -> Option<Duration> {
    let wait = Duration::try_from_secs_f64(seconds).ok()?;
    (wait <= MAX_WAIT).then_some(wait)
}

fn is_full(error: &cellblock_sandbox::Error) -> bool {
    matches!(error.guest_refusal(), Some(("full", _)))
}
