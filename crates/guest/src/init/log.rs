//! Output of a command that is kept: its last bytes in memory, its first ones in a file of the room.
//!
//! Both streams are one sequence, in the order in which they are read; beside it are the parts that
//! come from stderr. User code can change or remove the file, so what is read from it is what user
//! code made of it. It cannot change offsets.

use std::collections::VecDeque;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};

use cellblock_protocol::Stream;
use rustix::fs::{AtFlags, Mode, OFlags, unlinkat};
use rustix::io::{Errno, pread, pwrite};
use rustix::process::{Resource, getrlimit};

use super::path::{Refusal, Roots, open_beneath};

/// Maximum number of bytes in memory: the last ones.
const IN_MEMORY: usize = 256 * 1024;
/// Maximum size of the file in bytes, which has the first ones.
const IN_FILE: u64 = 16 * 1024 * 1024;
/// Maximum number of bytes that are read at once.
const PART: usize = 1024 * 1024;
/// Maximum number of parts of stderr that are remembered: the last ones. What was before them counts
/// as stdout.
const REMEMBERED: usize = 8192;
/// Maximum number of parts of stderr that are read at once.
const AT_ONCE: usize = 1024;

/// Kept output.
#[derive(Debug)]
pub(super) struct Log {
    path: String,
    ring: VecDeque<u8>,
    /// Number of bytes that were written.
    pub(super) total: u64,
    file: Option<OwnedFd>,
    /// Number of bytes that the file got.
    in_file: u64,
    /// Ranges of stderr.
    errors: VecDeque<Range<u64>>,
}

/// A part of kept output.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LogPart {
    /// Offset of the first byte.
    pub(super) offset: u64,
    pub(super) bytes: Vec<u8>,
    /// Ranges of stderr in it.
    pub(super) errors: Vec<Range<u64>>,
}

impl Log {
    /// Makes the file. Where it cannot be made, output is kept in memory alone.
    pub(super) fn new(roots: &Roots, path: String) -> Self {
        Self {
            file: create(roots, &path).ok(),
            path,
            ring: VecDeque::new(),
            total: 0,
            in_file: 0,
            errors: VecDeque::new(),
        }
    }

    /// Takes what the command wrote to a stream.
    pub(super) fn push(&mut self, stream: Stream, bytes: &[u8]) {
        if stream == Stream::Stderr {
            self.remember(self.total..self.total + bytes.len() as u64);
        }
        if self.in_file == self.total {
            self.write_file(bytes);
        }
        self.total += bytes.len() as u64;
        let kept = &bytes[bytes.len().saturating_sub(IN_MEMORY)..];
        let over = (self.ring.len() + kept.len()).saturating_sub(IN_MEMORY);
        self.ring.drain(..over);
        self.ring.extend(kept);
    }

    fn remember(&mut self, part: Range<u64>) {
        match self.errors.back_mut() {
            Some(last) if last.end == part.start => last.end = part.end,
            _ => self.errors.push_back(part),
        }
        if self.errors.len() > REMEMBERED {
            self.errors.pop_front();
        }
    }

    fn write_file(&mut self, mut bytes: &[u8]) {
        let Some(file) = &self.file else { return };
        // More than this would end the guest, or fail.
        let most = getrlimit(Resource::Fsize)
            .current
            .unwrap_or(u64::MAX)
            .min(IN_FILE);
        let room = usize::try_from(most.saturating_sub(self.in_file)).unwrap_or(usize::MAX);
        bytes = &bytes[..bytes.len().min(room)];
        while !bytes.is_empty() {
            match pwrite(file, bytes, self.in_file) {
                Ok(written) => {
                    self.in_file += written as u64;
                    bytes = &bytes[written..];
                }
                Err(Errno::INTR) => {}
                // The disk is full; the rest is in memory only.
                Err(_) => return,
            }
        }
    }

    /// Reads from an offset, or from the first byte after it that is not lost.
    pub(super) fn read(&self, offset: u64, length: u64) -> LogPart {
        let (offset, mut bytes) = self.read_bytes(offset, length);
        let end = offset + bytes.len() as u64;
        let first = self.errors.partition_point(|part| part.end <= offset);
        let mut parts = self.errors.range(first..).take_while(|part| part.start < end);
        let inside = |part: &Range<u64>| part.start.max(offset)..part.end.min(end);
        let errors = parts.by_ref().take(AT_ONCE).map(inside).collect();
        if let Some(beyond) = parts.next() {
            bytes.truncate(usize::try_from(beyond.start - offset).unwrap_or(usize::MAX));
        }
        LogPart {
            offset,
            bytes,
            errors,
        }
    }

    fn read_bytes(&self, offset: u64, length: u64) -> (u64, Vec<u8>) {
        let length = usize::try_from(length).unwrap_or(PART).min(PART);
        let offset = offset.min(self.total);
        let in_memory = self.total - self.ring.len() as u64;
        if offset < in_memory.min(self.in_file) {
            let bytes = self.read_file(offset, length);
            if !bytes.is_empty() {
                return (offset, bytes);
            }
        }
        let offset = offset.max(in_memory);
        let skipped = usize::try_from(offset - in_memory).unwrap_or(usize::MAX);
        let bytes = self.ring.iter().skip(skipped).take(length).copied().collect();
        (offset, bytes)
    }

    fn read_file(&self, offset: u64, length: usize) -> Vec<u8> {
        let Some(file) = &self.file else {
            return Vec::new();
        };
        let left = usize::try_from(self.in_file - offset).unwrap_or(length);
        let mut bytes = vec![0; length.min(left)];
        let read = pread(file, &mut bytes, offset).unwrap_or(0);
        bytes.truncate(read);
        bytes
    }

    /// Removes the file.
    pub(super) fn remove(&self, roots: &Roots) {
        if self.file.is_some()
            && let Ok((parent, name)) = roots.place_to_change(&self.path).and_then(|it| it.open_parent())
        {
            let _ = unlinkat(&parent, &name, AtFlags::empty());
        }
    }
}

fn create(roots: &Roots, path: &str) -> Result<OwnedFd, Refusal> {
    let (parent, name) = roots.place_to_change(path)?.open_parent()?;
    let _ = unlinkat(&parent, &name, AtFlags::empty());
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NONBLOCK;
    let file = open_beneath(parent.as_fd(), &name, flags, Mode::from_raw_mode(0o644))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(file: Option<OwnedFd>) -> Log {
        Log {
            path: String::new(),
            ring: VecDeque::new(),
            total: 0,
            file,
            in_file: 0,
            errors: VecDeque::new(),
        }
    }

    fn numbered(from: usize, to: usize) -> Vec<u8> {
        (from..to).map(|at| u8::try_from(at % 251).unwrap()).collect()
    }

    #[test]
    fn all_of_it_is_read_from_the_file_and_from_memory() {
        let file = tempfile::tempfile().unwrap();
        let mut log = log(Some(file.into()));
        let total = 3 * IN_MEMORY + 17;
        for from in (0..total).step_by(4096) {
            log.push(Stream::Stdout, &numbered(from, total.min(from + 4096)));
        }
        assert_eq!(log.ring.len(), IN_MEMORY);
        let mut read = Vec::new();
        while (read.len() as u64) < log.total {
            let part = log.read(read.len() as u64, 100_000);
            assert_eq!(part.offset, read.len() as u64);
            read.extend(part.bytes);
        }
        assert_eq!(read, numbered(0, total));
        assert_eq!(log.read_bytes(log.total + 5, 10), (log.total, Vec::new()));
    }

    #[test]
    fn bytes_that_neither_has_are_skipped() {
        let mut log = log(None);
        log.push(Stream::Stdout, &numbered(0, IN_MEMORY + 10));
        assert_eq!(log.read_bytes(0, 5), (10, numbered(10, 15)));
    }

    #[test]
    fn a_file_that_user_code_has_emptied_counts_as_lost() {
        let file = tempfile::tempfile().unwrap();
        let mut log = log(Some(file.try_clone().unwrap().into()));
        log.push(Stream::Stdout, &numbered(0, IN_MEMORY + 10));
        file.set_len(0).unwrap();
        assert_eq!(log.read_bytes(3, 2), (10, numbered(10, 12)));
    }

    #[test]
    fn what_comes_from_stderr_is_known_wherever_reading_begins_and_ends() {
        let mut log = log(None);
        for (stream, text) in [
            (Stream::Stderr, "ab"),
            (Stream::Stderr, "c"),
            (Stream::Stdout, "def"),
            (Stream::Stderr, "gh"),
        ] {
            log.push(stream, text.as_bytes());
        }
        let errors = |offset, length| log.read(offset, length).errors;
        assert_eq!(errors(0, 100), [0..3, 6..8]);
        assert_eq!(errors(1, 6), [1..3, 6..7]);
        assert_eq!(errors(3, 3), [] as [Range<u64>; 0]);
        assert_eq!(errors(8, 1), [] as [Range<u64>; 0]);
    }

    #[test]
    fn streams_that_alternate_cost_little_and_are_read_in_short_parts() {
        let mut log = log(None);
        let rounds = REMEMBERED as u64 + 10;
        for _ in 0..rounds {
            log.push(Stream::Stderr, b"e");
            log.push(Stream::Stdout, b"o");
        }
        assert_eq!(log.errors.len(), REMEMBERED);
        // The oldest are forgotten.
        assert_eq!(log.read(0, 21).errors.first(), Some(&(20..21)));
        let part = log.read(20, u64::MAX);
        assert_eq!((part.errors.len(), part.bytes.len()), (AT_ONCE, 2 * AT_ONCE));
        let mut read = 20;
        while read < log.total {
            let part = log.read(read, u64::MAX);
            assert!(!part.bytes.is_empty());
            read += part.bytes.len() as u64;
        }
        assert_eq!(read, 2 * rounds);
    }
}
