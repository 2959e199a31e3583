//! How sandboxes are made. Each backend is a wall around the same guest and kernel, and a way to carry their bytes.

use std::future::Future;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::time::Duration;

pub use cellblock_jail::cgroup::Usage;
pub use cellblock_jail::process::Ending;
use cellblock_jail::protection::Report;
use cellblock_protocol::{FromKernel, GENERATION};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedWriteHalf, pipe};
use tokio::sync::watch;

use crate::channel::FrameReader;
use crate::error::{Error, Kind, Result};
use crate::guest::Guest;
use crate::incoming::Incoming;
use crate::limits::Limits;

pub mod process;

/// A boxed future, for traits whose implementation is chosen at run time.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Makes sandboxes.
pub trait Backend: Send + Sync + std::fmt::Debug {
    /// The backend's name in reports and configuration.
    fn name(&self) -> &'static str;

    /// What every sandbox of this backend is confined by.
    fn report(&self) -> Report;

    /// Makes a sandbox whose guest runs and that has no kernel yet.
    fn create<'a>(&'a self, limits: &'a Limits) -> BoxFuture<'a, Result<Box<dyn Sandbox>>>;

    /// Completes once kernels start without waiting for the image's libraries.
    fn warmed(&self) -> BoxFuture<'_, Result<()>>;
}

/// One isolated environment. Dropping it destroys it.
pub trait Sandbox: Send + Sync + std::fmt::Debug {
    /// Its identity, unique on this host at any time.
    fn id(&self) -> &str;

    /// The guest: files, commands, interrupts.
    fn guest(&self) -> &Guest;

    /// Starts a kernel and waits until it is ready. Only one may run at a time.
    fn start_kernel(&self) -> BoxFuture<'_, Result<Kernel>>;

    /// What has been used since the sandbox was made.
    fn usage(&self) -> BoxFuture<'_, Result<Usage>>;

    /// Kills everything inside at once; what was held for it is given back when the sandbox is dropped.
    fn kill(&self);

    /// Ends it and completes when everything that was held for it has been given back.
    fn destroy(self: Box<Self>) -> BoxFuture<'static, Result<()>>;
}

/// A running kernel: frames both ways, what it writes, and its end.
#[derive(Debug)]
pub struct Kernel {
    /// Frames from the kernel.
    pub frames: FrameReader<Incoming, FromKernel>,
    /// Frames to the kernel; see [`write_frame`](crate::channel::write_frame).
    pub writer: OwnedWriteHalf,
    /// What was written to descriptor 1 by anything in the kernel's process tree.
    pub stdout: pipe::Receiver,
    /// The same for descriptor 2.
    pub stderr: pipe::Receiver,
    /// Becomes `Some` when the kernel's process has ended.
    pub end: watch::Receiver<Option<Ending>>,
    /// Signals the kernel without naming a pid.
    pidfd: Option<OwnedFd>,
}

/// How long a kernel may take from its fork to its first word.
const READY_LIMIT: Duration = Duration::from_mins(1);

impl Kernel {
    /// Takes over the channels of a kernel that is starting.
    pub(crate) fn new(
        channel: UnixStream,
        stdout: pipe::Receiver,
        stderr: pipe::Receiver,
        end: watch::Receiver<Option<Ending>>,
        pidfd: Option<OwnedFd>,
    ) -> Self {
        let (read, writer) = channel.into_split();
        Self {
            frames: FrameReader::new(Incoming::new(read), "kernel"),
            writer,
            stdout,
            stderr,
            end,
            pidfd,
        }
    }

    /// Waits until the kernel has locked itself down and said so.
    pub(crate) async fn ready(&mut self) -> Result<()> {
        let first = tokio::time::timeout(READY_LIMIT, self.frames.next())
            .await
            .map_err(|_| Kind::TooLate {
                what: "a kernel",
                limit: READY_LIMIT,
            })??;
        match first.map(|frame| frame.message) {
            Some(FromKernel::Hello {
                generation: GENERATION,
                ..
            }) => Ok(()),
            Some(FromKernel::Hello { generation, .. }) => Err(Error::protocol(
                "kernel",
                format!("it speaks generation {generation}, not {GENERATION}"),
            )),
            Some(_) => Err(Error::protocol("kernel", "its first message was not `hello`")),
            None => {
                let mut said = vec![0; 4096];
                let length = self.stderr.try_read(&mut said).unwrap_or(0);
                let reason = String::from_utf8_lossy(&said[..length]).trim().to_owned();
                Err(Kind::Launcher {
                    action: "start a kernel",
                    reason,
                }
                .into())
            }
        }
    }

    /// Sends SIGINT to the kernel's main process.
    pub fn interrupt(&self) {
        self.signal(rustix::process::Signal::INT);
    }

    /// Sends SIGKILL to the kernel's main process.
    pub fn kill(&self) {
        self.signal(rustix::process::Signal::KILL);
    }

    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(pidfd) = &self.pidfd {
            let _ = rustix::process::pidfd_send_signal(pidfd, signal);
        }
    }
}
