//! Output of a command, separated from the marks that its wrapper writes after it.

use memchr::memmem;

use crate::session::processes::ProcessStream;

/// Maximum number of bytes of an exit code with the end of its line.
const MAX_CODE: usize = 16;

/// Text of a command's streams, up to a common number of characters.
#[derive(Debug)]
pub(super) struct CommandStreams {
    /// Bytes before the exit code that end each stream.
    mark: Vec<u8>,
    stdout: MarkedStream,
    stderr: MarkedStream,
    /// Number of characters that may still be taken.
    left: usize,
    /// Number of characters that were left out. Of output that was not read, the bytes count.
    pub(super) left_out: u64,
}

/// One stream.
#[derive(Debug, Default)]
struct MarkedStream {
    /// Text that was taken.
    text: String,
    /// Bytes that may begin the mark, or a character.
    held: Vec<u8>,
    code: Option<i32>,
}

impl CommandStreams {
    /// Takes at most `characters` characters.
    pub(super) fn new(mark: &str, characters: usize) -> Self {
        Self {
            mark: mark.as_bytes().to_vec(),
            stdout: MarkedStream::default(),
            stderr: MarkedStream::default(),
            left: characters,
            left_out: 0,
        }
    }

    /// Takes bytes of a stream, and returns the text that they add.
    pub(super) fn push(&mut self, stream: ProcessStream, bytes: &[u8]) -> String {
        let mark = &self.mark;
        let ready = match stream {
            ProcessStream::Stdout => self.stdout.push(bytes, mark),
            ProcessStream::Stderr => self.stderr.push(bytes, mark),
        };
        self.take(stream, &ready)
    }

    /// Takes what is held: nothing follows.
    pub(super) fn flush(&mut self, stream: ProcessStream) -> String {
        let held = match stream {
            ProcessStream::Stdout => std::mem::take(&mut self.stdout.held),
            ProcessStream::Stderr => std::mem::take(&mut self.stderr.held),
        };
        self.take(stream, &held)
    }

    fn take(&mut self, stream: ProcessStream, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes);
        let end = text
            .char_indices()
            .nth(self.left)
            .map_or(text.len(), |(at, _)| at);
        let (taken, rest) = text.split_at(end);
        self.left -= taken.chars().count();
        self.left_out += rest.chars().count() as u64;
        let whole = match stream {
            ProcessStream::Stdout => &mut self.stdout.text,
            ProcessStream::Stderr => &mut self.stderr.text,
        };
        whole.push_str(taken);
        taken.to_owned()
    }

    /// Returns the exit code, once both streams have ended.
    pub(super) fn code(&self) -> Option<i32> {
        self.stdout.code.and(self.stderr.code)
    }

    /// Returns whether no more characters are taken.
    pub(super) const fn is_full(&self) -> bool {
        self.left == 0
    }

    /// Returns the texts of stdout and stderr.
    pub(super) fn into_texts(self) -> (String, String) {
        (self.stdout.text, self.stderr.text)
    }
}

impl MarkedStream {
    /// Takes bytes, and returns those that are certain to be the command's.
    fn push(&mut self, bytes: &[u8], mark: &[u8]) -> Vec<u8> {
        if self.code.is_some() {
            // Of a process that the command has left.
            return Vec::new();
        }
        self.held.extend_from_slice(bytes);
        let Some(at) = memmem::find(&self.held, mark) else {
            let possible = (1..mark.len()).rev();
            let begun = possible
                .into_iter()
                .find(|length| self.held.ends_with(&mark[..*length]));
            let ready = self.held.len() - begun.unwrap_or(0);
            let whole = ready - unfinished(&self.held[..ready]);
            return self.held.drain(..whole).collect();
        };
        let digits = &self.held[at + mark.len()..];
        let digits = &digits[..digits.len().min(MAX_CODE)];
        let code: i32 = match memchr::memchr(b'\n', digits) {
            Some(end) => String::from_utf8_lossy(&digits[..end]).parse().unwrap_or(1),
            // A command can read the mark and write it itself; what follows must not fill the memory.
            None if digits.len() == MAX_CODE => 1,
            None => return self.held.drain(..at).collect(),
        };
        self.code = Some(code);
        self.held.truncate(at);
        std::mem::take(&mut self.held)
    }
}

/// Returns the number of bytes at the end that begin a character.
fn unfinished(bytes: &[u8]) -> usize {
    let last = bytes.utf8_chunks().last();
    let invalid = last.map_or(&[][..], |chunk| chunk.invalid());
    match std::str::from_utf8(invalid) {
        Err(error) if error.error_len().is_none() => invalid.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ProcessStream::{Stderr, Stdout};

    const MARK: &str = "\u{1e}0123:";

    #[test]
    fn a_mark_ends_a_stream_wherever_it_is_split() {
        let whole = "über\u{1e}0\u{1e}0123:17\n".as_bytes();
        for split in 0..whole.len() {
            let mut streams = CommandStreams::new(MARK, 100);
            let mut text = streams.push(Stdout, &whole[..split]);
            text += &streams.push(Stdout, &whole[split..]);
            assert_eq!(text, "über\u{1e}0", "{split}");
            assert_eq!(streams.code(), None);
            assert_eq!(streams.push(Stderr, b"\x1e0123:17\n"), "");
            assert_eq!(streams.code(), Some(17));
            assert_eq!(streams.push(Stdout, b"of a server"), "");
            assert_eq!(streams.into_texts(), ("über\u{1e}0".to_owned(), String::new()));
        }
    }

    #[test]
    fn a_mark_without_an_exit_code_ends_a_stream_and_holds_nothing() {
        let mut streams = CommandStreams::new(MARK, 100);
        assert_eq!(streams.push(Stdout, b"x\x1e0123:"), "x");
        let part = [b'1'; 1 << 10];
        for _ in 0..1 << 10 {
            assert_eq!(streams.push(Stdout, &part), "");
            assert!(streams.stdout.held.len() <= MARK.len() + MAX_CODE);
        }
        assert_eq!(streams.push(Stderr, b"\x1e0123:1111111111111111"), "");
        assert_eq!(streams.code(), Some(1));
        assert_eq!(streams.into_texts(), ("x".to_owned(), String::new()));
    }

    #[test]
    fn both_streams_share_the_characters() {
        let mut streams = CommandStreams::new(MARK, 5);
        assert_eq!(streams.push(Stdout, "äöü".as_bytes()), "äöü");
        assert_eq!(streams.push(Stderr, b"abc"), "ab");
        assert!(streams.is_full());
        assert_eq!(streams.push(Stdout, b"more"), "");
        assert_eq!(streams.left_out, 5);
        assert_eq!(streams.into_texts(), ("äöü".to_owned(), "ab".to_owned()));
    }

    #[test]
    fn bytes_that_nothing_follows_are_text() {
        let mut streams = CommandStreams::new(MARK, 100);
        assert_eq!(streams.push(Stdout, b"x\x1e01"), "x");
        assert_eq!(streams.flush(Stdout), "\u{1e}01");
        assert_eq!(streams.push(Stdout, b"\xc3"), "");
        assert_eq!(streams.flush(Stdout), "\u{fffd}");
    }
}
