//! What a kernel writes and what it sends, in the order of its code.

use std::io;

use cellblock_protocol::FromKernel;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::net::unix::pipe;

use crate::channel::FrameReader;
use crate::incoming::Incoming;

/// Reads from a pipe of a kernel unless a frame comes first (`None`); 0 bytes when nobody can write any more.
///
/// A kernel sends an output once what was written before it has been read. So while something is in the pipe, a frame that is there is older
/// than it, and one that is not there comes after it. Both are asked in this order, and nothing is read that was not there by then: what
/// comes in between may be from after a frame that does, too.
pub fn read_in_order(
    pipe: &pipe::Receiver,
    frames: &FrameReader<Incoming, FromKernel>,
    buffer: &mut [u8],
) -> io::Result<Option<usize>> {
    // Tokio has to hear of a pipe that is empty: it goes on calling it readable otherwise.
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
