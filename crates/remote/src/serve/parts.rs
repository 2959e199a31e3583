//! A kernel's frames in the form in which they are forwarded: unread, except for whether one ends a
//! cell.

use bytes::{Bytes, BytesMut};
use cellblock_protocol::{FrameLimits, FromKernel, Prefix};

/// Bytes of frames.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FramePart {
    pub(super) bytes: Bytes,
    /// Whether the kernel's output must be sent first: the client does not read it afterward.
    pub(super) ends: bool,
}

/// Splits a kernel's frames into parts. A header is held back until it is complete.
#[derive(Debug, Default)]
pub(super) struct Parts {
    held: BytesMut,
    /// Number of outstanding bytes of the current frame.
    rest: u64,
    /// Whether the kernel has sent an invalid frame. The client decides what that means.
    broken: bool,
}

/// Content at the start of a frame.
enum FrameStart {
    /// A part of a header.
    Partly,
    Frame {
        bytes: u64,
        ends: bool,
    },
    NoFrame,
}

impl Parts {
    pub(super) fn push(&mut self, bytes: BytesMut) {
        // Moved, not copied, in the usual case that nothing is held back.
        self.held.unsplit(bytes);
    }

    /// Returns the next part, of at most `most` bytes; `None` until more bytes arrive.
    pub(super) fn take(&mut self, most: usize) -> Option<FramePart> {
        let mut begins_end = false;
        if !self.broken && self.rest == 0 {
            match self.begun() {
                FrameStart::Partly => return None,
                FrameStart::Frame { bytes, ends } => (self.rest, begins_end) = (bytes, ends),
                FrameStart::NoFrame => self.broken = true,
            }
        }
        let mut length = self.held.len().min(most);
        if !self.broken {
            length = usize::try_from(self.rest).map_or(length, |rest| rest.min(length));
            self.rest -= length as u64;
        }
        (length > 0).then(|| FramePart {
            bytes: self.held.split_to(length).freeze(),
            ends: begins_end || self.broken,
        })
    }

    /// Returns the held-back bytes of a header that will never be complete.
    pub(super) fn remainder(&mut self) -> Bytes {
        self.held.split().freeze()
    }

    fn begun(&self) -> FrameStart {
        let Some(prefix) = self.held.first_chunk::<{ Prefix::LEN }>() else {
            return FrameStart::Partly;
        };
        let Ok(prefix) = Prefix::parse(*prefix, &FrameLimits::default()) else {
            return FrameStart::NoFrame;
        };
        let end = Prefix::LEN + prefix.header_bytes();
        let Some(header) = self.held.get(Prefix::LEN..end) else {
            return FrameStart::Partly;
        };
        match prefix.header::<FromKernel>(header) {
            Ok(header) => FrameStart::Frame {
                bytes: end as u64 + prefix.blob_bytes(),
                ends: matches!(header.message, FromKernel::Done { .. }),
            },
            Err(_) => FrameStart::NoFrame,
        }
    }
}

#[cfg(test)]
mod tests {
    use cellblock_protocol::encode;

    use super::*;

    const MOST: usize = 1000;

    /// A frame that carries 2,000 bytes, one that ends a cell, and one after it.
    fn said() -> [Vec<u8>; 3] {
        let message = |text: serde_json::Value| serde_json::from_value::<FromKernel>(text).unwrap();
        let call = message(serde_json::json!({"type": "call", "call": 1, "method": "m", "params": {}}));
        let done = message(serde_json::json!({"type": "done", "cell": 1, "outcome": "completed"}));
        let standby = message(serde_json::json!({"type": "standby", "changes": 1}));
        let blob = [7; 2000];
        let mut first = encode(&call, &[&blob], &FrameLimits::default()).unwrap();
        first.extend(blob);
        let whole = |message| encode(message, &[], &FrameLimits::default()).unwrap();
        [first, whole(&done), whole(&standby)]
    }

    /// Returns all parts if `size` bytes arrive at a time.
    fn parts(bytes: &[u8], at_a_time: usize) -> (Vec<FramePart>, Bytes) {
        let (mut parts, mut taken) = (Parts::default(), Vec::new());
        for piece in bytes.chunks(at_a_time) {
            parts.push(BytesMut::from(piece));
            taken.extend(std::iter::from_fn(|| parts.take(MOST)));
        }
        (taken, parts.remainder())
    }

    #[test]
    fn only_the_frame_that_ends_a_cell_waits_for_output() {
        let said = said();
        let bytes = said.concat();
        for at_a_time in [1, 3, 64, 999, 4096] {
            let (parts, remainder) = parts(&bytes, at_a_time);
            assert_eq!(remainder, "");
            assert!(parts.iter().all(|part| part.bytes.len() <= MOST));
            let carried: Vec<u8> = parts.iter().flat_map(|part| part.bytes.clone()).collect();
            assert_eq!(carried, bytes);
            let end = parts.iter().position(|part| part.ends).unwrap();
            let before: usize = parts[..end].iter().map(|part| part.bytes.len()).sum();
            assert_eq!(before, said[0].len());
            assert_eq!(parts.iter().filter(|part| part.ends).count(), 1);
        }
    }

    #[test]
    fn invalid_frames_are_forwarded_unchanged() {
        for wrong in [&[255_u8; 8][..], b"\0\0\0\x0a\0\0\0\x06{\"a\":}"] {
            let bytes = [&said()[2], wrong, b"and on"].concat();
            let (parts, remainder) = parts(&bytes, 5);
            let carried: Vec<u8> = parts.iter().flat_map(|part| part.bytes.clone()).collect();
            assert_eq!([carried, remainder.to_vec()].concat(), bytes);
            assert!(parts.last().unwrap().ends);
        }
    }

    #[test]
    fn a_truncated_header_is_the_remainder() {
        let done = &said()[1];
        let (parts, remainder) = parts(&done[..done.len() - 1], 7);
        assert_eq!(parts, []);
        assert_eq!(remainder, done[..done.len() - 1]);
    }
}
