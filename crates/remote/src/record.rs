//! A kernel's frames and output on one stream, which preserves their order: output before a frame
//! stays before it.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use cellblock_sandbox::backend::ProcessEnd;

/// Maximum size of a record in bytes.
pub(super) const LARGEST: usize = 64 * 1024;
const HEAD: usize = 5;

/// One event of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// The kernel sent bytes of frames.
    Frames(Bytes),
    /// The kernel, or a process that it started, wrote to descriptor 1.
    Stdout(Bytes),
    /// The same for descriptor 2.
    Stderr(Bytes),
    /// The kernel closed its channel.
    Closed,
    /// The kernel ended.
    Ended(ProcessEnd),
}

impl Record {
    /// Returns its encoded form; its content has at most [`LARGEST`] bytes.
    pub(super) fn encode(&self) -> Bytes {
        let (kind, carried) = match self {
            Self::Frames(bytes) => (0, bytes.clone()),
            Self::Stdout(bytes) => (1, bytes.clone()),
            Self::Stderr(bytes) => (2, bytes.clone()),
            Self::Closed => (3, Bytes::new()),
            Self::Ended(ending) => {
                let (how, number) = match ending {
                    ProcessEnd::Exited(code) => (0, *code),
                    ProcessEnd::Signaled(signal) => (1, *signal),
                    ProcessEnd::Unknown => (2, 0),
                };
                let mut carried = BytesMut::with_capacity(HEAD);
                carried.put_u8(how);
                carried.put_i32(number);
                (4, carried.freeze())
            }
        };
        let mut record = BytesMut::with_capacity(HEAD + carried.len());
        record.put_u8(kind);
        record.put_u32(u32::try_from(carried.len()).unwrap_or(u32::MAX));
        record.extend_from_slice(&carried);
        record.freeze()
    }
}

/// Decodes records from bytes that arrive in pieces.
#[derive(Debug, Default)]
pub(super) struct Records(BytesMut);

impl Records {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Returns the next whole record, or the problem if the bytes are invalid.
    pub(super) fn take(&mut self) -> Result<Option<Record>, String> {
        let Some(head) = self.0.first_chunk::<HEAD>() else {
            return Ok(None);
        };
        let [kind, length @ ..] = *head;
        let length = u32::from_be_bytes(length) as usize;
        if length > LARGEST {
            return Err(format!("a record of {length} bytes, the limit is {LARGEST}"));
        }
        if self.0.len() < HEAD + length {
            return Ok(None);
        }
        self.0.advance(HEAD);
        let mut carried = self.0.split_to(length).freeze();
        match (kind, length) {
            (0, 1..) => Ok(Some(Record::Frames(carried))),
            (1, 1..) => Ok(Some(Record::Stdout(carried))),
            (2, 1..) => Ok(Some(Record::Stderr(carried))),
            (3, 0) => Ok(Some(Record::Closed)),
            (4, HEAD) => {
                let (how, number) = (carried.get_u8(), carried.get_i32());
                Ok(Some(Record::Ended(match how {
                    0 => ProcessEnd::Exited(number),
                    1 => ProcessEnd::Signaled(number),
                    _ => ProcessEnd::Unknown,
                })))
            }
            _ => Err(format!("a record of kind {kind} with {length} bytes")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn records_arrive_whole_however_they_are_cut() {
        let sent = [
            Record::Stdout(Bytes::from_static(b"out")),
            Record::Frames(Bytes::from_static(b"frame")),
            Record::Stderr(Bytes::from_static(b"e")),
            Record::Closed,
            Record::Ended(ProcessEnd::Signaled(9)),
            Record::Ended(ProcessEnd::Exited(-1)),
            Record::Ended(ProcessEnd::Unknown),
        ];
        let bytes: Vec<u8> = sent.iter().flat_map(Record::encode).collect();
        for size in 1..bytes.len() {
            let mut records = Records::default();
            let mut received = Vec::new();
            for part in bytes.chunks(size) {
                records.push(part);
                while let Some(record) = records.take().unwrap() {
                    received.push(record);
                }
            }
            assert_eq!(received, sent, "in pieces of {size}");
        }
    }

    #[test]
    fn oversized_and_unknown_records_are_rejected() {
        for (bytes, reason) in [
            (
                &[0, 0, 1, 0, 1][..],
                "a record of 65537 bytes, the limit is 65536",
            ),
            (&[0, 0, 0, 0, 0], "a record of kind 0 with 0 bytes"),
            (&[5, 0, 0, 0, 0], "a record of kind 5 with 0 bytes"),
            (&[4, 0, 0, 0, 1, 0], "a record of kind 4 with 1 bytes"),
        ] {
            let mut records = Records::default();
            records.push(bytes);
            assert_eq!(records.take(), Err(reason.to_owned()));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_records_or_rejected(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let mut records = Records::default();
            records.push(&bytes);
            let mut length = 0;
            while let Ok(Some(record)) = records.take() {
                length += record.encode().len();
            }
            prop_assert!(length <= bytes.len());
        }
    }
}
