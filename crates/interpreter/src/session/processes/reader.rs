//! Following a process: what it writes, stream by stream and as it comes, and its end.

use std::collections::VecDeque;
use std::time::Duration;

use super::{
    MAX_WAIT, ProcessError, ProcessOutput, ProcessReport, ProcessSignal, ProcessState, ProcessStream,
    Processes,
};
use crate::error::{Error, Result};
use crate::session::Session;

/// Number of bytes that are read at once.
const PART: u64 = 64 * 1024;
/// Maximum wait of one read. Each read counts as a use of the session.
const WAIT: Duration = Duration::from_secs(20);

/// Reads what a process writes. What is not read stays in the sandbox.
#[derive(Debug)]
pub struct ProcessReader {
    pub(super) session: Session,
    /// ID of the process.
    pub id: String,
    /// Offset of the next part.
    offset: u64,
    /// Parts that were read and are not passed on yet.
    parts: VecDeque<(ProcessStream, Vec<u8>)>,
    eof: bool,
}

impl ProcessReader {
    /// Reads output from an offset on.
    pub fn new(session: &Session, id: &str, offset: u64) -> Self {
        Self {
            session: session.clone(),
            id: id.to_owned(),
            offset,
            parts: VecDeque::new(),
            eof: false,
        }
    }

    /// Reads what is written from now on.
    pub async fn from_now(session: &Session, id: &str) -> Result<Self> {
        let now = session.processes().output(id, 0, 0, Duration::ZERO).await?;
        Ok(Self::new(session, id, now.total))
    }

    /// Returns the next part; `None` once the process has ended, also with its sandbox.
    pub async fn next(&mut self) -> Result<Option<(ProcessStream, Vec<u8>)>> {
        loop {
            if let Some(part) = self.parts.pop_front() {
                return Ok(Some(part));
            }
            if self.eof {
                return Ok(None);
            }
            let processes = self.session.processes();
            let read = match processes.output(&self.id, self.offset, PART, WAIT).await {
                // Its state says so.
                Err(Error::Process(ProcessError::Lost { .. })) => return Ok(None),
                read => read?,
            };
            self.offset = read.next;
            self.eof = read.eof;
            self.parts = parts(&read);
        }
    }

    /// Waits for the end of the process.
    pub async fn end(&self) -> Result<ProcessReport> {
        self.session.processes().ended(&self.id, Duration::MAX).await
    }

    /// Ends the process and everything that it started.
    pub async fn kill(&self) {
        self.session.processes().kill(&self.id).await;
    }
}

/// Returns the parts of the output, after a note in stderr if bytes before them are lost.
fn parts(read: &ProcessOutput) -> VecDeque<(ProcessStream, Vec<u8>)> {
    let note = (read.lost > 0).then(|| {
        let note = format!(
            "[{} bytes of output are lost: they were read too late]\n",
            read.lost
        );
        (ProcessStream::Stderr, note.into_bytes())
    });
    let kept = read.parts().map(|(stream, bytes)| (stream, bytes.to_vec()));
    note.into_iter().chain(kept).collect()
}

impl Processes<'_> {
    /// Waits up to `limit` for a process to end, also longer than one request; returns its state
    /// then.
    pub async fn ended(self, id: &str, mut limit: Duration) -> Result<ProcessReport> {
        loop {
            let report = self.wait(id, limit).await?;
            limit = limit.saturating_sub(MAX_WAIT);
            if report.state != ProcessState::Running || limit.is_zero() {
                return Ok(report);
            }
        }
    }

    /// Ends a process and everything that it started.
    pub async fn kill(self, id: &str) {
        // It may have ended.
        let _ = self.signal(id, ProcessSignal::KILL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_output_is_noted_before_the_output_that_follows_it() {
        let read = ProcessOutput {
            offset: 10,
            bytes: b"rest".to_vec(),
            next: 14,
            lost: 10,
            total: 14,
            eof: true,
            stderr: Vec::new(),
        };
        let note = b"[10 bytes of output are lost: they were read too late]\n".to_vec();
        let rest = (ProcessStream::Stdout, b"rest".to_vec());
        assert_eq!(parts(&read), [(ProcessStream::Stderr, note), rest.clone()]);
        assert_eq!(parts(&ProcessOutput { lost: 0, ..read }), [rest]);
    }
}
