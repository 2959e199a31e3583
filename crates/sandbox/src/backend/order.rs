//! Reading a kernel's pipes and frames in the order in which its code produced them.

use std::io;

use cellblock_protocol::FromKernel;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::net::unix::pipe;

use crate::channel::FrameReader;
use crate::incoming::SocketReader;

/// Reads from a kernel's pipe unless a frame comes first (`None`); 0 bytes when the pipe has no
/// writer left.
///
/// A kernel sends an output after everything written before it has been read. So while the pipe
/// contains data, a frame that is already there is older than the data, and any other frame comes
/// later. The frame is checked first and then the pipe, and only data that was there by then is
/// read: data that arrives in between may belong after the next frame.
pub fn read_in_order(
    pipe: &pipe::Receiver,
    frames: &FrameReader<SocketReader, FromKernel>,
    buffer: &mut [u8],
) -> io::Result<Option<usize>> {
    // Tokio must learn that the pipe is empty; otherwise it keeps reporting the pipe as readable.
    pipe.try_io(|| {
        let mut state = [PollFd::new(pipe, PollFlags::IN)];
        poll(&mut state, Some(&Timespec::default()))?;
        let state = state[0].revents();
        if state.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if state.contains(PollFlags::IN) && frames.has_more() {
            return Ok(None);
        }
        Ok(Some(rustix::io::retry_on_intr(|| {
            rustix::io::read(pipe, &mut *buffer)
        })?))
    })
}
