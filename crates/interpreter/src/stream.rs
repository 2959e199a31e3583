//! Keeping the beginning and the end of a stream in bounded memory.

use std::collections::VecDeque;

use crate::execution::StreamText;
use crate::render::redraw::LEFT_OUT;

/// Takes any number of bytes and keeps at most `limit` of them.
#[derive(Debug)]
pub(crate) struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    half: usize,
    total: u64,
    /// Bytes of the total that were removed.
    cleared: u64,
}

impl Capture {
    pub(crate) fn new(limit: u64) -> Self {
        let half = usize::try_from(limit / 2).unwrap_or(usize::MAX / 2);
        Self {
            head: Vec::new(),
            tail: VecDeque::new(),
            half,
            total: 0,
            cleared: 0,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(self.half - self.head.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.half)..];
        let surplus = (self.tail.len() + rest.len()).saturating_sub(self.half);
        self.tail.drain(..surplus);
        self.tail.extend(rest);
    }

    /// Returns the number of bytes that were pushed, also of those that were removed.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Returns the number of bytes since the last removal.
    pub(crate) fn current(&self) -> u64 {
        self.total - self.cleared
    }

    /// Removes everything.
    pub(crate) fn clear(&mut self) {
        self.head.clear();
        self.tail.clear();
        self.cleared = self.total;
    }

    /// Returns the beginning and the end, which are adjacent if nothing is left out.
    pub(crate) fn take(self) -> (Vec<u8>, Vec<u8>) {
        (self.head, self.tail.into())
    }

    pub(crate) fn finish(self) -> StreamText {
        let bytes = self.current();
        let (mut head, tail) = self.take();
        let kept = (head.len() + tail.len()) as u64;
        let truncated = kept < bytes;
        let text = if truncated {
            let left_out = bytes - kept;
            format!(
                "{}\n{LEFT_OUT}{left_out} of {bytes} bytes left out …]\n{}",
                String::from_utf8_lossy(&head),
                String::from_utf8_lossy(&tail)
            )
        } else {
            head.extend(tail);
            String::from_utf8_lossy(&head).into_owned()
        };
        StreamText {
            text,
            truncated,
            bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_stream_is_kept_whole() {
        let mut capture = Capture::new(10);
        capture.push(b"hello ");
        capture.push(b"you!");
        assert_eq!(
            capture.finish(),
            StreamText {
                text: "hello you!".into(),
                truncated: false,
                bytes: 10
            }
        );
    }

    #[test]
    fn a_long_stream_keeps_its_beginning_and_its_end() {
        let mut capture = Capture::new(6);
        for part in ["abcdefgh", "ij", "klm"] {
            capture.push(part.as_bytes());
        }
        let text = capture.finish();
        assert_eq!(text.text, "abc\n[… 7 of 13 bytes left out …]\nklm");
        assert!(text.truncated);
        assert_eq!(text.bytes, 13);
    }

    #[test]
    fn memory_is_bounded_by_the_limit() {
        let mut capture = Capture::new(1000);
        for _ in 0..1000 {
            capture.push(&[b'x'; 4096]);
        }
        assert_eq!(capture.head.len() + capture.tail.len(), 1000);
        assert_eq!(capture.total(), 4_096_000);
    }

    #[test]
    fn what_is_cleared_is_not_kept_and_not_missed() {
        let mut capture = Capture::new(6);
        capture.push(b"abcdefgh");
        capture.clear();
        capture.push(b"ijkl");
        assert_eq!((capture.total(), capture.current()), (12, 4));
        let text = capture.finish();
        assert_eq!(
            (text.text.as_str(), text.truncated, text.bytes),
            ("ijkl", false, 4)
        );
    }

    #[test]
    fn bytes_that_are_not_text_are_replaced() {
        let mut capture = Capture::new(100);
        capture.push(b"a\xffb");
        assert_eq!(capture.finish().text, "a\u{fffd}b");
    }
}
