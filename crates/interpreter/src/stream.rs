//! Keeping the beginning and the end of a stream in bounded memory.

use std::collections::VecDeque;

use crate::execution::StreamText;

/// Takes any number of bytes and keeps at most `limit` of them.
#[derive(Debug)]
pub(crate) struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    half: usize,
    total: u64,
}

impl Capture {
    pub(crate) fn new(limit: u64) -> Self {
        let half = usize::try_from(limit / 2).unwrap_or(usize::MAX / 2);
        Self {
            head: Vec::new(),
            tail: VecDeque::new(),
            half,
            total: 0,
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

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn finish(mut self) -> StreamText {
        let kept = (self.head.len() + self.tail.len()) as u64;
        let truncated = kept < self.total;
        let tail = std::mem::take(&mut self.tail);
        let text = if truncated {
            let left_out = self.total - kept;
            let tail: Vec<u8> = tail.into();
            format!(
                "{}\n[… {left_out} of {} bytes left out …]\n{}",
                String::from_utf8_lossy(&self.head),
                self.total,
                String::from_utf8_lossy(&tail)
            )
        } else {
            self.head.extend(tail);
            String::from_utf8_lossy(&self.head).into_owned()
        };
        StreamText {
            text,
            truncated,
            bytes: self.total,
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
    fn bytes_that_are_not_text_are_replaced() {
        let mut capture = Capture::new(100);
        capture.push(b"a\xffb");
        assert_eq!(capture.finish().text, "a\u{fffd}b");
    }
}
