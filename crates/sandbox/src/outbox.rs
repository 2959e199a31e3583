//! Frames on their way to a kernel that nobody waits for.

use std::collections::VecDeque;
use std::io::{Read as _, Seek as _, SeekFrom};

use cellblock_protocol::{Blob, FrameLimits, MessageSet, encode_before};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use crate::error::{DuringIo, Error, Result};

/// Number of bytes of a blob that are in memory at once.
const CHUNK: usize = 256 * 1024;

/// Queue of frames. [`send`](Self::send) can be dropped and called again at any time, so that it
/// runs beside everything else that its owner waits for.
#[derive(Debug, Default)]
pub struct Outbox {
    frames: VecDeque<OutgoingFrame>,
}

#[derive(Debug)]
struct OutgoingFrame {
    /// The bytes to send next: first the header, then parts of blobs.
    chunk: Vec<u8>,
    sent: usize,
    /// Whether any byte of the frame has been sent.
    begun: bool,
    blobs: VecDeque<Blob>,
    /// Position in the first blob.
    position: u64,
}

impl Outbox {
    /// Adds a frame to the end.
    pub fn push<M: MessageSet>(&mut self, message: &M, blobs: Vec<Blob>) -> Result<()> {
        let lengths: Vec<_> = blobs.iter().map(Blob::len).collect();
        let chunk = encode_before(message, &lengths, &FrameLimits::default())
            .map_err(|error| Error::request(error.to_string()))?;
        self.frames.push_back(OutgoingFrame {
            chunk,
            sent: 0,
            begun: false,
            blobs: blobs.into(),
            position: 0,
        });
        Ok(())
    }

    /// Returns whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Returns the number of frames that are not completely sent.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Removes all frames except one of which a part has been sent.
    pub fn keep_begun(&mut self) {
        self.frames.retain(|frame| frame.begun);
    }

    /// Removes all frames.
    pub fn clear(&mut self) {
        self.frames.clear();
    }

    /// Sends all frames. Dropping the future loses nothing.
    pub async fn send(&mut self, to: &mut (impl AsyncWrite + Unpin)) -> Result<()> {
        while let Some(frame) = self.frames.front_mut() {
            if frame.sent == frame.chunk.len() && !frame.refill()? {
                self.frames.pop_front();
                continue;
            }
            let written = to.write(&frame.chunk[frame.sent..]).await;
            let written = written.during("write to a channel")?;
            if written == 0 {
                return Err(std::io::Error::from(std::io::ErrorKind::WriteZero)).during("write to a channel");
            }
            frame.sent += written;
            frame.begun = true;
        }
        Ok(())
    }
}

impl OutgoingFrame {
    /// Takes the next part of the blobs; `false` if there is none.
    fn refill(&mut self) -> Result<bool> {
        self.sent = 0;
        self.chunk.clear();
        while let Some(blob) = self.blobs.front() {
            let mut reader = blob.reader();
            let part = reader
                .seek(SeekFrom::Start(self.position))
                .and_then(|_| reader.take(CHUNK as u64).read_to_end(&mut self.chunk));
            self.position += part.during("read a blob")? as u64;
            if !self.chunk.is_empty() {
                return Ok(true);
            }
            if self.position < blob.len() {
                return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof)).during("read a blob");
            }
            self.blobs.pop_front();
            self.position = 0;
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use cellblock_protocol::ToKernel;
    use tokio::io::{AsyncReadExt as _, duplex};

    use super::*;
    use crate::channel::FrameReader;

    fn spilled(bytes: &[u8]) -> Blob {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        Blob::File(file, bytes.len() as u64)
    }

    #[tokio::test]
    async fn frames_arrive_whole_however_often_their_sending_is_dropped() {
        let blobs = [vec![1_u8; CHUNK * 2 + 17], Vec::new(), vec![2_u8; 5]];
        let mut outbox = Outbox::default();
        for cell in 0..2 {
            let blobs = vec![spilled(&blobs[0]), spilled(&blobs[1]), blobs[2].clone().into()];
            outbox.push(&ToKernel::Variables { cell }, blobs).unwrap();
        }
        let (mut ours, mut theirs) = duplex(1000);
        let mut received = Vec::new();
        while !outbox.is_empty() {
            tokio::select! {
                biased;
                // Completes often, which drops the other branch.
                read = theirs.read_buf(&mut received) => drop(read.unwrap()),
                sent = outbox.send(&mut ours) => sent.unwrap(),
            }
        }
        drop(ours);
        theirs.read_to_end(&mut received).await.unwrap();
        let mut reader = FrameReader::<_, ToKernel>::new(received.as_slice(), "host");
        for cell in 0..2 {
            let frame = reader.next().await.unwrap().unwrap();
            assert_eq!(frame.message, ToKernel::Variables { cell });
            for (blob, sent) in frame.blobs.iter().zip(&blobs) {
                let mut bytes = Vec::new();
                blob.reader().read_to_end(&mut bytes).unwrap();
                assert!(bytes == *sent);
            }
        }
        assert!(reader.next().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn only_a_frame_that_has_begun_is_kept() {
        let mut outbox = Outbox::default();
        for cell in 0..3 {
            outbox.push(&ToKernel::Variables { cell }, Vec::new()).unwrap();
        }
        let (mut ours, mut theirs) = duplex(5);
        tokio::select! {
            biased;
            sent = outbox.send(&mut ours) => panic!("{sent:?}"),
            () = tokio::task::yield_now() => {}
        }
        outbox.keep_begun();
        let mut received = Vec::new();
        tokio::select! {
            sent = outbox.send(&mut ours) => sent.unwrap(),
            () = async { while theirs.read_buf(&mut received).await.is_ok() {} } => {}
        }
        drop(ours);
        theirs.read_to_end(&mut received).await.unwrap();
        let mut reader = FrameReader::<_, ToKernel>::new(received.as_slice(), "host");
        let frame = reader.next().await.unwrap().unwrap();
        assert_eq!(frame.message, ToKernel::Variables { cell: 0 });
        assert!(reader.next().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_file_shorter_than_its_blob_is_an_error() {
        let mut outbox = Outbox::default();
        let blob = Blob::File(tempfile::tempfile().unwrap(), 3);
        outbox.push(&ToKernel::Variables { cell: 1 }, vec![blob]).unwrap();
        let error = outbox.send(&mut tokio::io::sink()).await.unwrap_err();
        assert!(error.to_string().contains("read a blob"), "{error}");
    }
}
