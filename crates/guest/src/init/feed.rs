//! Bytes from the host for a command or a connection, which the guest hands over as they are read.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use cellblock_jail::error::SyscallResult;
use cellblock_protocol::TerminalSize;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use rustix::pipe::{PipeFlags, pipe_with};

use super::path::Refusal;
use super::streams;

/// Maximum number of bytes that wait to be read.
const QUEUED: usize = 1024 * 1024;
/// Ctrl-D, which ends the input of programs that read lines of a terminal.
const END_OF_INPUT: u8 = 4;

/// The guest's end of a command's standard input, or of a connection. By default, there is none.
#[derive(Debug, Default)]
pub(super) struct Feed {
    end: Option<OwnedFd>,
    queued: VecDeque<u8>,
    /// Whether nothing comes after the queued bytes.
    closing: bool,
    kind: FeedKind,
}

/// Destination of the bytes, which decides how their end is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FeedKind {
    /// Its end is closed.
    #[default]
    Pipe,
    /// It stays open, and gets Ctrl-D.
    Terminal,
    /// It is shut down in this direction.
    Socket,
}

impl Feed {
    /// Makes both ends, if the command reads any input.
    pub(super) fn new(open: bool) -> cellblock_jail::Result<(Option<OwnedFd>, Self)> {
        if !open {
            return Ok((None, Self::default()));
        }
        let (stdin, pipe) = pipe_with(PipeFlags::CLOEXEC).during("make a pipe")?;
        // Of this end alone: programs expect that theirs waits.
        fcntl_setfl(&pipe, OFlags::NONBLOCK).during("set up a pipe")?;
        let feed = Self {
            end: Some(pipe),
            ..Self::default()
        };
        Ok((Some(stdin), feed))
    }

    /// Takes the guest's end of a terminal.
    pub(super) fn terminal(end: OwnedFd) -> Self {
        Self {
            end: Some(end),
            kind: FeedKind::Terminal,
            ..Self::default()
        }
    }

    /// Takes a connected socket, which must not make its writer wait.
    pub(super) fn socket(end: OwnedFd) -> Self {
        Self {
            end: Some(end),
            kind: FeedKind::Socket,
            ..Self::default()
        }
    }

    /// Changes the size of the terminal.
    pub(super) fn resize(&self, size: TerminalSize) -> Result<(), Refusal> {
        match &self.end {
            Some(terminal) if self.kind == FeedKind::Terminal => Ok(streams::resize(terminal, size)?),
            _ => Err(Refusal::new("no_terminal", "it has no terminal, or has ended")),
        }
    }

    /// Queues bytes, all of them or none.
    pub(super) fn push(&mut self, bytes: &[u8], close: bool) -> Result<(), Refusal> {
        if self.is_closed() {
            return Err(Refusal::new("closed", "its standard input is closed"));
        }
        let queued = self.queued.len();
        if queued + bytes.len() > QUEUED {
            return Err(Refusal::new(
                "full",
                format!("{queued} bytes wait to be read, the limit is {QUEUED}"),
            ));
        }
        self.queued.extend(bytes);
        if close && self.kind == FeedKind::Terminal {
            self.queued.push_back(END_OF_INPUT);
        }
        self.closing = close && self.kind != FeedKind::Terminal;
        self.flush();
        Ok(())
    }

    /// Returns whether no more bytes can be queued.
    pub(super) fn is_closed(&self) -> bool {
        self.end.is_none() || self.closing
    }

    /// Returns the end that bytes wait for.
    pub(super) fn waiting(&self) -> Option<&OwnedFd> {
        self.end.as_ref().filter(|_| !self.queued.is_empty())
    }

    /// Writes as much as the other side takes.
    pub(super) fn flush(&mut self) {
        while let (Some(end), false) = (&self.end, self.queued.is_empty()) {
            match rustix::io::write(end, self.queued.as_slices().0) {
                Ok(written) => drop(self.queued.drain(..written)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                // Nobody reads it any more.
                Err(_) => *self = Self::default(),
            }
        }
        if self.closing
            && let Some(end) = self.end.take()
            && self.kind == FeedKind::Socket
        {
            // The other side may have ended it first.
            let _ = shutdown(&end, Shutdown::Write);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_is_queued_as_a_whole_and_ends_after_it_was_read() {
        let (stdin, mut feed) = Feed::new(true).unwrap();
        let stdin = stdin.unwrap();
        feed.push(&vec![b'a'; QUEUED], false).unwrap();
        let more = feed.push(&vec![b'b'; QUEUED], true).unwrap_err();
        assert_eq!(more.code, "full");
        feed.push(b"b", true).unwrap();
        assert_eq!(feed.push(b"c", false).unwrap_err().code, "closed");
        let mut read = Vec::new();
        let mut part = vec![0; 4096];
        loop {
            feed.flush();
            match rustix::io::read(&stdin, &mut part).unwrap() {
                0 => break,
                length => read.extend(&part[..length]),
            }
        }
        assert_eq!(read.len(), QUEUED + 1);
        assert_eq!(read.last(), Some(&b'b'));
    }

    #[test]
    fn input_that_nobody_reads_any_more_is_closed() {
        let (stdin, mut feed) = Feed::new(true).unwrap();
        drop(stdin);
        feed.push(b"a", false).unwrap();
        assert_eq!(feed.push(b"b", false).unwrap_err().code, "closed");
    }
}
