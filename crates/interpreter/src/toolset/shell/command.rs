//! One command: a process of the session, which is followed until the command has ended.

use std::fmt::Write as _;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout_at};

use super::listener::CommandListener;
use super::streams::CommandStreams;
use super::{CommandOutcome, CommandReport};
use crate::error::{Blame, Result};
use crate::random_bytes;
use crate::session::Session;
use crate::session::processes::{
    MAX_OUTPUT, ProcessOrder, ProcessReport, ProcessSignal, ProcessState, ProcessStream,
};

/// Program that runs a command and reports its end.
const WRAPPER: &str = include_str!("wrapper.sh");
/// Time for which one request waits for output.
const WAIT: Duration = Duration::from_secs(20);
/// Pause between requests for output that is only searched for the command's end.
const PAUSE: Duration = Duration::from_millis(50);
/// Number of bytes at the end of such output that are searched.
const TAIL: u64 = 64 << 10;
/// Time for a process whose output has ended to be gone.
const END_LIMIT: Duration = Duration::from_secs(10);
/// Exit codes of a command that could not be started, and of one that signal n killed, less n.
const NOT_STARTED: i32 = 126;
const BY_SIGNAL: i32 = 128;
/// The signal that ended a process whose sandbox is gone.
const KILL: i32 = 9;

/// A process that is ended with everything that it started when this is dropped.
struct RunningProcess<'a> {
    session: &'a Session,
    id: Option<String>,
}

impl Drop for RunningProcess<'_> {
    fn drop(&mut self) {
        // Without a runtime, the session ends as well.
        if let Some(id) = self.id.take()
            && let Ok(runtime) = Handle::try_current()
        {
            let session = self.session.clone();
            runtime.spawn(async move { session.processes().signal(&id, ProcessSignal::KILL).await });
        }
    }
}

/// Runs a command to its end; the listener gets its text as it comes.
pub(super) async fn run(
    session: &Session,
    command: &str,
    timeout: Duration,
    length: usize,
    listener: &CommandListener<'_>,
) -> Result<CommandReport> {
    let mark = mark();
    let argv = ["sh", "-c", WRAPPER, "sh", &mark, command];
    let order = ProcessOrder {
        command: argv.map(str::to_owned).to_vec(),
        ..ProcessOrder::default()
    };
    let started = match session.processes().start(order).await {
        Ok(started) => started,
        Err(error) if error.blame() == Blame::Caller => {
            let stderr = format!("{error}\n");
            listener.wrote(ProcessStream::Stderr, stderr.clone()).await;
            return Ok(CommandReport {
                stdout: String::new(),
                stderr,
                left_out: 0,
                end: CommandOutcome::Exited(NOT_STARTED),
            });
        }
        Err(error) => return Err(error),
    };
    let mut running = RunningProcess {
        session,
        id: Some(started.id.clone()),
    };
    let mut streams = CommandStreams::new(&mark, length);
    let followed = follow(session, &started.id, &mut streams, listener);
    let end = if let Ok(code) = timeout_at(Instant::now() + timeout, followed).await {
        CommandOutcome::Exited(code?)
    } else {
        // It may have ended just now.
        let _ = session.processes().signal(&started.id, ProcessSignal::KILL).await;
        CommandOutcome::TimedOut(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX))
    };
    // Processes that it has left continue.
    running.id = None;
    for stream in [ProcessStream::Stdout, ProcessStream::Stderr] {
        listener.wrote(stream, streams.flush(stream)).await;
    }
    let left_out = streams.left_out;
    let (stdout, stderr) = streams.into_texts();
    Ok(CommandReport {
        stdout,
        stderr,
        left_out,
        end,
    })
}

/// Reads what a command writes until it has ended, and returns its exit code.
async fn follow(
    session: &Session,
    id: &str,
    streams: &mut CommandStreams,
    listener: &CommandListener<'_>,
) -> Result<i32> {
    let mut offset = 0;
    loop {
        let read = session.processes().output(id, offset, MAX_OUTPUT, WAIT).await?;
        offset = read.next;
        for (stream, bytes) in read.parts() {
            listener.wrote(stream, streams.push(stream, bytes)).await;
        }
        if let Some(code) = streams.code() {
            return Ok(code);
        }
        if read.eof {
            let ended = session.processes().wait(id, END_LIMIT).await?;
            return Ok(code_of(&ended));
        }
        if streams.is_full() {
            // A command that writes without end must not keep the host busy.
            sleep(PAUSE).await;
            offset = offset.max(read.total.saturating_sub(TAIL));
        }
    }
}

/// Returns the exit code of a process that ended without its wrapper's report.
fn code_of(ended: &ProcessReport) -> i32 {
    match (ended.state, ended.exit_code) {
        (ProcessState::Exited, Some(code)) => code,
        _ => BY_SIGNAL + KILL,
    }
}

/// Returns a mark that no output has by chance.
fn mark() -> String {
    let mut mark = "\u{1e}".to_owned();
    for byte in random_bytes::<8>() {
        // Writing to a string cannot fail.
        let _ = write!(mark, "{byte:02x}");
    }
    mark + ":"
}
