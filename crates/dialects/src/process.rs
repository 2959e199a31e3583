//! Processes of a session, as dialects use them: what they write, stream by stream and as it comes,
//! and their end.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use cellblock_interpreter::session::processes::{
    MAX_WAIT, ProcessError, ProcessOrder, ProcessReport, ProcessSignal, ProcessState, ProcessStream,
    Processes,
};
use cellblock_interpreter::{Error, Session};

/// Number of bytes that are read at once.
const PART: u64 = 64 * 1024;
/// Pause after an answer without output, which comes early if too many requests wait.
const PAUSE: Duration = Duration::from_millis(5);

/// Reads what a process writes. What is not read stays in the sandbox.
#[derive(Debug)]
pub(crate) struct ProcessReader {
    session: Session,
    /// Id of the process.
    pub(crate) id: String,
    /// Offset of the next part.
    offset: u64,
    /// Parts that were read and are not passed on yet.
    parts: VecDeque<(ProcessStream, Vec<u8>)>,
    eof: bool,
}

impl ProcessReader {
    /// Reads output from an offset on.
    pub(crate) fn new(session: &Session, id: &str, offset: u64) -> Self {
        Self {
            session: session.clone(),
            id: id.to_owned(),
            offset,
            parts: VecDeque::new(),
            eof: false,
        }
    }

    /// Reads what is written from now on.
    pub(crate) async fn from_now(session: &Session, id: &str) -> Result<Self, Error> {
        let now = session.processes().output(id, 0, 0, Duration::ZERO).await?;
        Ok(Self::new(session, id, now.total))
    }

    /// Returns the next part; nothing any more once the process has ended, also with its sandbox.
    pub(crate) async fn next(&mut self) -> Result<Option<(ProcessStream, Vec<u8>)>, Error> {
        loop {
            if let Some(part) = self.parts.pop_front() {
                return Ok(Some(part));
            }
            if self.eof {
                return Ok(None);
            }
            let processes = self.session.processes();
            let read = match processes.output(&self.id, self.offset, PART, MAX_WAIT).await {
                // Its state says so.
                Err(Error::Process(ProcessError::Lost { .. })) => return Ok(None),
                read => read?,
            };
            self.offset = read.next;
            self.eof = read.eof;
            if read.bytes.is_empty() && !read.eof {
                tokio::time::sleep(PAUSE).await;
            }
            self.parts = read
                .parts()
                .map(|(stream, bytes)| (stream, bytes.to_vec()))
                .collect();
        }
    }

    /// Waits for the end of the process.
    pub(crate) async fn end(&self) -> Result<ProcessReport, Error> {
        ended(self.session.processes(), &self.id).await
    }

    /// Ends the process and everything that it started.
    pub(crate) async fn kill(&self) {
        kill(self.session.processes(), &self.id).await;
    }
}

/// Waits for the end of a process.
pub(crate) async fn ended(processes: Processes<'_>, id: &str) -> Result<ProcessReport, Error> {
    loop {
        let report = processes.wait(id, MAX_WAIT).await?;
        if report.state != ProcessState::Running {
            return Ok(report);
        }
    }
}

/// Ends a process and everything that it started.
pub(crate) async fn kill(processes: Processes<'_>, id: &str) {
    // It may have ended.
    let _ = processes.signal(id, ProcessSignal::KILL).await;
}

/// An order of a command that a shell reads.
pub(crate) fn shell_order(
    command: &str,
    directory: Option<String>,
    env: BTreeMap<String, String>,
) -> ProcessOrder {
    ProcessOrder {
        command: ["bash", "-c", command].map(str::to_owned).to_vec(),
        directory,
        env,
        ..ProcessOrder::default()
    }
}
