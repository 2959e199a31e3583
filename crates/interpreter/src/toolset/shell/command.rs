//! One command: a process of the session, which is followed until the command has ended.

use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout_at};

use super::listener::CommandListener;
use super::report::{CommandOutcome, CommandReport};
use super::streams::CommandStreams;
use crate::error::{Blame, Result};
use crate::mint;
use crate::session::Session;
use crate::session::processes::{MAX_OUTPUT, ProcessOrder, ProcessReport, ProcessState, ProcessStream};

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
/// Time for the answer to a request for output that is still read after a command's timeout.
const GRACE: Duration = Duration::from_secs(5);
/// Exit codes of a command that could not be started, and of one that signal n killed, less n.
const NOT_STARTED: i32 = 126;
const BY_SIGNAL: i32 = 128;
/// The signal that ended a process whose sandbox is gone.
const KILL: i32 = 9;

/// A process that is ended with everything that it started when this is dropped.
struct RunningProcess {
    session: Session,
    id: String,
    /// Whether it continues instead.
    continues: bool,
}

impl RunningProcess {
    async fn start(session: Session, order: ProcessOrder) -> Result<Self> {
        let started = session.processes().start(order).await?;
        Ok(Self {
            session,
            id: started.id,
            continues: false,
        })
    }
}

impl Drop for RunningProcess {
    fn drop(&mut self) {
        // Without a runtime, the session ends as well.
        if !self.continues
            && let Ok(runtime) = Handle::try_current()
        {
            let (session, id) = (self.session.clone(), self.id.clone());
            runtime.spawn(async move { session.processes().kill(&id).await });
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
    // No output has it by chance.
    let mark = mint("\u{1e}") + ":";
    let argv = ["sh", "-c", WRAPPER, "sh", &mark, command];
    let order = ProcessOrder {
        command: argv.map(str::to_owned).to_vec(),
        ..ProcessOrder::default()
    };
    // In a separate task: a process that has started when nobody waits for it any more is ended, too.
    let starting = tokio::spawn(RunningProcess::start(session.clone(), order));
    let started = starting.await.expect("starting a process does not panic");
    let mut running = match started {
        Ok(running) => running,
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
    let mut streams = CommandStreams::new(&mark, length);
    let deadline = Instant::now() + timeout;
    let end = if let Some(code) = follow(&running, deadline, &mut streams, listener).await? {
        CommandOutcome::Exited(code)
    } else {
        session.processes().kill(&running.id).await;
        CommandOutcome::TimedOut(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX))
    };
    // Processes that it has left continue.
    running.continues = true;
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

/// Reads what a command writes until it has ended, and returns its exit code; `None` if it has not
/// ended at the deadline. A listener that reads slowly takes no time from the command.
async fn follow(
    running: &RunningProcess,
    deadline: Instant,
    streams: &mut CommandStreams,
    listener: &CommandListener<'_>,
) -> Result<Option<i32>> {
    let RunningProcess { session, id, .. } = running;
    let mut offset = 0;
    // Number of bytes that were written when the time was over.
    let mut last = None;
    loop {
        let now = Instant::now();
        let left = deadline.saturating_duration_since(now);
        let reading = session.processes().output(id, offset, MAX_OUTPUT, WAIT.min(left));
        let Ok(read) = timeout_at(deadline.max(now) + GRACE, reading).await else {
            return Ok(None);
        };
        let read = read?;
        streams.left_out += read.lost;
        offset = read.next;
        for (stream, bytes) in read.parts() {
            listener.wrote(stream, streams.push(stream, bytes)).await;
        }
        if let Some(code) = streams.code() {
            return Ok(Some(code));
        }
        if read.eof {
            let ended = session.processes().wait(id, END_LIMIT).await?;
            return Ok(Some(code_of(&ended)));
        }
        if left.is_zero() && offset >= *last.get_or_insert(read.total) {
            return Ok(None);
        }
        if streams.is_full() {
            // A command that writes without end must not keep the host busy.
            sleep(PAUSE).await;
            let skipped = read.total.saturating_sub(TAIL).saturating_sub(offset);
            streams.left_out += skipped;
            offset += skipped;
        }
    }
}

/// Returns the exit code of a process that ended without its wrapper's report.
fn code_of(ended: &ProcessReport) -> i32 {
    match (ended.state, ended.exit_code) {
        (ProcessState::Exited, Some(code)) => code,
        _ => BY_SIGNAL + ended.signal_number().unwrap_or(KILL),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_exit_code_of_a_killed_process_names_its_signal() {
        for (state, signal, code) in [
            ("killed", Some("SIGTERM"), 143),
            ("killed", Some("SIGSEGV"), 139),
            ("killed", Some("signal 40"), 168),
            ("lost", None, 137),
        ] {
            let ended: ProcessReport = serde_json::from_value(json!({
                "id": "p1", "command": ["sh"], "state": state, "exit_code": null, "signal": signal,
                "stdin": false, "terminal": false, "started_unix_ms": 1, "ended_unix_ms": 2,
                "output_file": "/tmp/p1.log",
            }))
            .unwrap();
            assert_eq!(code_of(&ended), code, "{signal:?}");
        }
    }
}
