//! Kept copies of kernels, from which a session can go on any number of times.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use cellblock_jail::fds;
use cellblock_protocol::{FrameLimits, FromKernel, Obstacle, ToKernel, encode};
use tokio::net::UnixStream;

use super::{Kernel, KernelHold, READY_LIMIT};
use crate::channel::{FrameReader, write_frame};
use crate::error::{DuringIo, Error, Result, SandboxErrorKind};
use crate::incoming::{SocketReader, SocketWriter, split};

/// Maximum time for a kernel to copy itself.
const KEEP_LIMIT: Duration = Duration::from_secs(30);
/// Maximum time for a copy to say that it is there.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// Number of frames that are read until its report; others may send in its name.
const FRAMES: usize = 256;

/// A copy of a kernel, which waits in its sandbox. It ends when this is dropped.
#[derive(Debug)]
pub struct KeptKernel {
    /// Process id in the sandbox, as the kernel reported it. None once this copy has become the
    /// kernel, until the copy in its place says its own.
    pub(super) pid: Option<u32>,
    /// Estimate of the memory that it takes up at first, in bytes.
    pub bytes: u64,
    /// Number of the socket on which it waits, as it said last; 0 until it has said one.
    pub(super) socket: u32,
    /// Property that cannot be moved to another sandbox.
    pub bound: Option<Obstacle>,
    frames: FrameReader<SocketReader, FromKernel>,
    writer: SocketWriter,
}

impl KeptKernel {
    fn new((pid, bytes, bound): (u32, u64, Option<Obstacle>), socket: UnixStream) -> Result<Self> {
        let (read, writer) = split(socket).during("watch a channel")?;
        Ok(Self {
            pid: Some(pid),
            bytes,
            socket: 0,
            bound,
            frames: FrameReader::new(read, "kept kernel"),
            writer,
        })
    }

    /// Asks the process whether it is there, and waits for its answer. Only code of the sandbox can
    /// have ended or stopped it.
    pub async fn is_there(&mut self) -> bool {
        self.answers(0).await
    }

    /// Asks the same, and lets it prepare to be moved to another sandbox.
    pub(super) async fn is_ready(&mut self) -> bool {
        self.answers(1).await
    }

    /// Returns its process id in the sandbox, if it has been there. A copy that is put in the place
    /// of another one says so at once.
    pub async fn pid(&mut self) -> Option<u32> {
        if self.pid.is_none() {
            self.hear().await;
        }
        self.pid
    }

    async fn answers(&mut self, cell: u64) -> bool {
        let question = ToKernel::Checkpoint { cell };
        self.pid().await.is_some()
            && write_frame(&mut self.writer, &question, &[]).await.is_ok()
            && self.hear().await
    }

    /// Receives what the process says of itself.
    async fn hear(&mut self) -> bool {
        let answer = tokio::time::timeout(ANSWER_LIMIT, self.frames.next()).await;
        let Ok(Ok(Some(answer))) = answer else {
            return false;
        };
        let FromKernel::Kept { pid, socket, .. } = answer.message else {
            return false;
        };
        (self.pid, self.socket) = (pid.or(self.pid), socket);
        true
    }

    /// Orders it to go on as the kernel with these channels, and to put a copy in its place.
    pub(super) fn order(&mut self, channel: BorrowedFd<'_>, spare: BorrowedFd<'_>) -> Result<()> {
        let order = encode(&ToKernel::TakeOver { reseed: None }, &[], &FrameLimits::default())
            .map_err(|error| Error::protocol("host", error.to_string()))?;
        fds::hand_over(&self.writer, &order, &[channel, spare]).map_err(|error| {
            SandboxErrorKind::Launcher {
                action: "reach a kept copy of a kernel",
                reason: cellblock_jail::error::chain(&error),
            }
        })?;
        self.pid = None;
        Ok(())
    }
}

impl Kernel {
    /// Orders a copy that was [moved](super::Sandbox::move_kernel) into this kernel to go on, and
    /// waits until it does. With `reseed` it seeds its random generators anew.
    pub async fn arrive(&mut self, reseed: bool) -> Result<()> {
        let KernelHold::Here { spare, .. } = &mut self.hold else {
            return Err(Error::request("order a copy that another machine has"));
        };
        let pair = || -> Result<(UnixStream, OwnedFd)> {
            let (ours, theirs) = fds::stream_pair().map_err(|error| SandboxErrorKind::Launcher {
                action: "make a channel",
                reason: cellblock_jail::error::chain(&error),
            })?;
            rustix::io::ioctl_fionbio(&ours, true).during("make a channel non-blocking")?;
            let ours = UnixStream::from_std(ours.into()).during("watch a channel")?;
            Ok((ours, theirs))
        };
        let ((channel, theirs), (next_spare, spare_in)) = (pair()?, pair()?);
        let order = ToKernel::TakeOver { reseed: Some(reseed) };
        let order = encode(&order, &[], &FrameLimits::default())
            .map_err(|error| Error::protocol("host", error.to_string()))?;
        fds::hand_over(&self.writer, &order, &[theirs.as_fd(), spare_in.as_fd()]).map_err(|error| {
            SandboxErrorKind::Launcher {
                action: "reach a copy of a kernel",
                reason: cellblock_jail::error::chain(&error),
            }
        })?;
        drop((theirs, spare_in));
        *spare = next_spare;
        let (read, writer) = split(channel).during("watch a channel")?;
        // The former channel is closed only now: until then the copy may not have read the order.
        let former = std::mem::replace(&mut self.frames, FrameReader::new(read, "kernel"));
        let former = (former, std::mem::replace(&mut self.writer, writer));
        let first = self.first_message(READY_LIMIT, "a kernel").await?;
        if let Some(FromKernel::Kept {
            refused: Some(obstacle),
            ..
        }) = first
        {
            return Err(SandboxErrorKind::Immovable(obstacle).into());
        }
        self.greeted(first.as_ref())?;
        drop(former);
        Ok(())
    }

    /// Keeps a copy of the kernel, which must be idle; or returns the reason why it cannot be kept.
    /// Whatever the kernel says of its standby meanwhile goes to `standby`.
    pub async fn keep(
        &mut self,
        cell: u64,
        mut standby: impl FnMut(u64, Option<u32>, Option<Obstacle>) + Send,
    ) -> Result<Result<KeptKernel, Obstacle>> {
        let KernelHold::Here { .. } = &self.hold else {
            return Err(Error::request("keep a copy of a kernel that another machine has"));
        };
        let (ours, theirs) = fds::stream_pair().map_err(|error| SandboxErrorKind::Launcher {
            action: "make a channel",
            reason: cellblock_jail::error::chain(&error),
        })?;
        rustix::io::ioctl_fionbio(&ours, true).during("make a channel non-blocking")?;
        let socket = UnixStream::from_std(ours.into()).during("watch a channel")?;
        let order = encode(&ToKernel::Checkpoint { cell }, &[], &FrameLimits::default())
            .map_err(|error| Error::protocol("host", error.to_string()))?;
        if let Err(error) = fds::hand_over(&self.writer, &order, &[theirs.as_fd()]) {
            let reason = cellblock_jail::error::chain(&error);
            return Ok(Err(Obstacle::UnreachableKernel { reason }));
        }
        drop(theirs);
        let answered = async {
            for _ in 0..FRAMES {
                match self.frames.next().await? {
                    Some(frame) => match frame.message {
                        FromKernel::Kept {
                            cell: of,
                            pid,
                            refused,
                            bytes,
                            bound,
                            ..
                        } if of == cell => return Ok(Some((pid, refused, (bytes, bound)))),
                        FromKernel::Standby {
                            changes,
                            pid,
                            refused,
                        } => standby(changes, pid, refused),
                        _ => {}
                    },
                    None => return Ok(None),
                }
            }
            Err(Error::protocol("kernel", "it did not answer `checkpoint`"))
        };
        let answer =
            tokio::time::timeout(KEEP_LIMIT, answered)
                .await
                .map_err(|_| SandboxErrorKind::TooLate {
                    what: "a kernel's copy",
                    limit: KEEP_LIMIT,
                })?;
        Ok(match answer {
            Ok(Some((Some(pid), None, (bytes, bound)))) => Ok(KeptKernel::new((pid, bytes, bound), socket)?),
            Ok(Some((_, Some(obstacle), _))) => Err(obstacle),
            Ok(Some((None, None, _))) => {
                return Err(Error::protocol(
                    "kernel",
                    "it reported neither a copy nor an obstacle",
                ));
            }
            Ok(None) => Err(Obstacle::EndedKernel),
            Err(error) if error.is_cut() => Err(Obstacle::EndedKernel),
            Err(error) => return Err(error),
        })
    }
}
