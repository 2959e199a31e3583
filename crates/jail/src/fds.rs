//! Control messages: one JSON document and some descriptors per packet of a `SOCK_SEQPACKET` socket.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::{Serialize, de::DeserializeOwned};

use crate::error::{Result, SyscallResult};

/// Maximum number of descriptors in one message.
pub const MAX_FDS: usize = 24;
/// Maximum size of a message in bytes.
pub const MAX_MESSAGE: usize = 128 * 1024;

/// Creates a connected pair of packet sockets, closed on exec.
pub fn packet_pair() -> Result<(OwnedFd, OwnedFd)> {
    socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .during("make a control socket")
}

/// Creates a connected pair of stream sockets, closed on exec.
pub fn stream_pair() -> Result<(OwnedFd, OwnedFd)> {
    socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .during("make a channel socket")
}

/// Sends one message with descriptors.
pub fn send(socket: impl AsFd, message: &impl Serialize, fds: &[BorrowedFd<'_>]) -> Result<()> {
    let body = serde_json::to_vec(message)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(fds));
    }
    loop {
        match sendmsg(
            socket.as_fd(),
            &[IoSlice::new(&body)],
            &mut ancillary,
            SendFlags::NOSIGNAL,
        ) {
            Err(rustix::io::Errno::INTR) => {}
            other => return other.map(drop).during("send a control message"),
        }
    }
}

/// Writes some bytes and one or two descriptors to a stream socket, completely or not at all.
pub fn hand_over(stream: impl AsFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(fds));
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let sent =
        sendmsg(stream, &[IoSlice::new(bytes)], &mut ancillary, flags).during("hand over a descriptor")?;
    if sent == bytes.len() {
        Ok(())
    } else {
        Err(io::Error::from(io::ErrorKind::WriteZero)).during("hand over a descriptor")
    }
}

/// Receives one message with its descriptors; `None` when the peer has closed the socket.
///
/// A process at its limit of open files receives the message without descriptors: the kernel drops
/// those that do not fit, and the remaining ones could be mistaken for others.
pub fn receive<M: DeserializeOwned>(socket: impl AsFd) -> Result<Option<(M, Vec<OwnedFd>)>> {
    let mut body = vec![0_u8; MAX_MESSAGE];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        match recvmsg(
            socket.as_fd(),
            &mut [IoSliceMut::new(&mut body)],
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC,
        ) {
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::CONNRESET) => return Ok(None),
            other => break other.during("receive a control message")?,
        }
    };
    if received.bytes == 0 {
        return Ok(None);
    }
    let mut fds = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    if received.flags.contains(ReturnFlags::CTRUNC) {
        fds.clear();
    }
    Ok(Some((serde_json::from_slice(&body[..received.bytes])?, fds)))
}

/// Closes every descriptor except `keep` and the standard three.
pub fn close_all_but(keep: &[RawFd]) -> Result<()> {
    let mut keep: Vec<u32> = keep
        .iter()
        .filter_map(|fd| u32::try_from(*fd).ok())
        .filter(|fd| *fd > 2)
        .collect();
    keep.sort_unstable();
    keep.dedup();
    let mut first = 3;
    for fd in keep {
        if fd > first {
            close_range(first, fd - 1)?;
        }
        first = fd + 1;
    }
    // gVisor reads the numbers as signed ones.
    close_range(first, i32::MAX.cast_unsigned())
}

fn close_range(first: u32, last: u32) -> Result<()> {
    // SAFETY: close_range touches no memory. The callers guarantee that no open descriptor in the
    // range is used again: they are children fresh from clone, whose copies of the parent's owners
    // are never dropped because they end in `_exit`.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    if result < 0 {
        Err(io::Error::last_os_error()).during("close inherited descriptors")
    } else {
        Ok(())
    }
}

/// Puts a descriptor at a fixed number, not closed on exec, and consumes the original.
pub fn place(fd: OwnedFd, at: RawFd) -> Result<()> {
    if fd.as_raw_fd() == at {
        rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::empty()).during("keep a descriptor over exec")?;
        let _ = fd.into_raw_fd();
        return Ok(());
    }
    // SAFETY: dup2 touches no memory. Closing whatever `at` referred to is intended; callers
    // guarantee this by placing descriptors only in a child that has just been cloned.
    let result = unsafe { libc::dup2(fd.as_raw_fd(), at) };
    if result < 0 {
        Err(io::Error::last_os_error()).during("place a descriptor")
    } else {
        Ok(())
    }
}
