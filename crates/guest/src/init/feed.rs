//! Standard input of a command: bytes from the host, which the guest hands over as they are read.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use cellblock_jail::error::During;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use super::path::Refusal;

/// Maximum number of bytes that wait to be read.
const QUEUED: usize = 1024 * 1024;

/// The guest's end of a command's standard input. By default, there is none.
#[derive(Debug, Default)]
pub(super) struct Feed {
    pipe: Option<OwnedFd>,
    queued: VecDeque<u8>,
    /// Whether the input ends after the queued bytes.
    closing: bool,
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
            pipe: Some(pipe),
            ..Self::default()
        };
        Ok((Some(stdin), feed))
    }

    /// Queues bytes, all of them or none.
    pub(super) fn push(&mut self, bytes: &[u8], close: bool) -> Result<(), Refusal> {
        if self.pipe.is_none() || self.closing {
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
        self.closing = close;
        self.flush();
        Ok(())
    }

    /// Returns the pipe while bytes wait for it.
    pub(super) fn waiting(&self) -> Option<&OwnedFd> {
        self.pipe.as_ref().filter(|_| !self.queued.is_empty())
    }

    /// Writes as much as the pipe takes.
    pub(super) fn flush(&mut self) {
        while let (Some(pipe), false) = (&self.pipe, self.queued.is_empty()) {
            match rustix::io::write(pipe, self.queued.as_slices().0) {
                Ok(written) => drop(self.queued.drain(..written)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                // Nobody reads it any more.
                Err(_) => *self = Self::default(),
            }
        }
        if self.closing {
            self.pipe = None;
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
