//! The guest's end of its channel, with blocking reads and writes of whole frames. The host is the
//! only party that the guest trusts.

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use cellblock_jail::error::SyscallResult;
use cellblock_jail::{Error, Result};
use cellblock_protocol::{FrameError, FrameLimits, FromGuest, Prefix, ToGuest, encode};

#[derive(Debug)]
pub(super) struct Channel {
    fd: OwnedFd,
    limits: FrameLimits,
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Channel {
    pub(super) fn new(fd: OwnedFd) -> Self {
        Self {
            fd,
            limits: FrameLimits::default(),
        }
    }

    /// Reads the next message and its blobs; `None` when the host has closed the channel.
    pub(super) fn receive(&self) -> Result<Option<(ToGuest, Vec<Vec<u8>>)>> {
        let mut prefix = [0; Prefix::LEN];
        if !self.fill(&mut prefix)? {
            return Ok(None);
        }
        let prefix = Prefix::parse(prefix, &self.limits).map_err(broken)?;
        let mut header = vec![0; prefix.header_bytes()];
        if !self.fill(&mut header)? {
            return Ok(None);
        }
        let header = prefix.header::<ToGuest>(&header).map_err(broken)?;
        let mut blobs = Vec::with_capacity(header.blobs.len());
        for length in header.blobs {
            let mut blob = vec![0; usize::try_from(length).unwrap_or(0)];
            if !self.fill(&mut blob)? {
                return Ok(None);
            }
            blobs.push(blob);
        }
        Ok(Some((header.message, blobs)))
    }

    /// Writes a message and its blobs.
    pub(super) fn send(&self, message: &FromGuest, blobs: &[&[u8]]) -> Result<()> {
        let head = encode(message, blobs, &self.limits).map_err(broken)?;
        let mut parts: Vec<&[u8]> = vec![&head];
        parts.extend(blobs);
        while parts.iter().any(|part| !part.is_empty()) {
            let slices: Vec<_> = parts.iter().map(|part| IoSlice::new(part)).collect();
            match rustix::io::writev(&self.fd, &slices) {
                Ok(mut written) => {
                    for part in &mut parts {
                        let taken = written.min(part.len());
                        *part = &part[taken..];
                        written -= taken;
                    }
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error).during("send to the host"),
            }
        }
        Ok(())
    }

    /// Reads until the buffer is full; `false` when the channel ends first.
    fn fill(&self, mut buffer: &mut [u8]) -> Result<bool> {
        while !buffer.is_empty() {
            match rustix::io::read(&self.fd, &mut *buffer) {
                Ok(0) | Err(rustix::io::Errno::CONNRESET) => return Ok(false),
                Ok(read) => buffer = &mut buffer[read..],
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error).during("receive from the host"),
            }
        }
        Ok(true)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the form that map_err takes")]
fn broken(error: FrameError) -> Error {
    Error::Child(cellblock_jail::error::chain(&error))
}
