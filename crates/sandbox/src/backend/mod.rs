//! How sandboxes are made. Each backend is a wall around the same guest and kernel, and a way to carry their bytes.

use std::fs::File;
use std::future::Future;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

pub use cellblock_jail::cgroup::Usage;
pub use cellblock_jail::process::Ending;
use cellblock_jail::protection::Report;
use cellblock_protocol::{FromKernel, GENERATION, Limits as FrameLimits, ToKernel, encode};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedWriteHalf, pipe};
use tokio::sync::watch;

use crate::channel::FrameReader;
use crate::error::{Error, Kind, Result};
use crate::guest::Guest;
use crate::incoming::Incoming;
use crate::limits::Limits;

mod order;
pub mod process;

pub use order::read_in_order;

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

    /// Lets the standby of a kernel that has ended take over: everything else in the sandbox is killed, then `pid`, which the kernel said
    /// its standby to be, goes on in its place. What was written to the pipes and not read is dropped.
    fn rescue(&self, ended: Kernel, pid: u32) -> BoxFuture<'_, Result<Kernel>>;

    /// Shows a file, read-only, at a name of `/tmp/data` where there is a file already. `path` is the file's own; it shows in the sandbox'
    /// mount table.
    fn mount_data<'a>(&'a self, name: &'a str, file: &'a File, path: &'a Path) -> BoxFuture<'a, Result<()>>;

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
    /// Its number in the sandbox, as it said before any code of a user ran.
    pub pid: u32,
    /// Signals it.
    pub hold: Hold,
}

/// How a kernel is reached beside its channel.
#[derive(Debug)]
pub enum Hold {
    /// It is a process of this machine.
    Here {
        /// Signals the kernel without naming a pid.
        pidfd: Option<OwnedFd>,
        /// Leads to the kernel's standby. Nothing is sent on it but the order to take over.
        spare: UnixStream,
    },
    /// Something else signals it.
    Elsewhere(Arc<dyn Signal>),
}

/// Signals a kernel of another machine.
pub trait Signal: Send + Sync + std::fmt::Debug {
    /// Sends SIGINT, sooner or later.
    fn interrupt(&self);

    /// Sends SIGKILL, sooner or later.
    fn kill(&self);

    /// Completes when the other machine has been told of the interrupts that were sent until now.
    fn settled(&self) -> BoxFuture<'_, ()>;
}

/// Reads what is in a pipe or socket of a kernel at this moment; an error of the kind `WouldBlock` when there is nothing.
///
/// Tokio's own `try_read` answers from the readiness that it was last told of. A frame can be read before that is up to date, and what was
/// written before the frame would be missed.
pub fn read_now<F: AsFd>(pipe: F, buffer: &mut [u8]) -> std::io::Result<usize> {
    Ok(rustix::io::retry_on_intr(|| {
        rustix::io::read(&pipe, &mut *buffer)
    })?)
}

/// How long is looked for what a kernel said before it ended: its end may be told before its last frame is seen to be there.
pub const LAST_WORDS: Duration = Duration::from_millis(100);
/// How long a standby may take to say that it has taken over.
const RESCUE_LIMIT: Duration = Duration::from_secs(10);
/// How long a kernel may take from its fork to its first word.
const READY_LIMIT: Duration = Duration::from_mins(1);

impl Kernel {
    /// Takes over the channels of a kernel that is starting.
    pub(crate) fn new(
        channel: UnixStream,
        stdout: pipe::Receiver,
        stderr: pipe::Receiver,
        end: watch::Receiver<Option<Ending>>,
        hold: Hold,
    ) -> Self {
        let (read, writer) = channel.into_split();
        Self {
            frames: FrameReader::new(Incoming::new(read), "kernel"),
            writer,
            stdout,
            stderr,
            end,
            pid: 0,
            hold,
        }
    }

    /// Returns a kernel of another machine, whose channels a backend carries; `pid` is its number in the sandbox.
    pub fn elsewhere(
        channel: UnixStream,
        stdout: pipe::Receiver,
        stderr: pipe::Receiver,
        end: watch::Receiver<Option<Ending>>,
        pid: u32,
        signal: Arc<dyn Signal>,
    ) -> Self {
        let kernel = Self::new(channel, stdout, stderr, end, Hold::Elsewhere(signal));
        Self { pid, ..kernel }
    }

    /// Orders the standby to take over, with the other end of a new spare channel, and answers the process that says it has.
    pub(crate) async fn take_over(&mut self, ours: UnixStream, theirs: OwnedFd) -> Result<u32> {
        let order = encode(&ToKernel::TakeOver {}, &[], &FrameLimits::default())
            .map_err(|error| Error::protocol("host", error.to_string()))?;
        let Hold::Here { spare, .. } = &mut self.hold else {
            return Err(Error::request("order a standby that another machine has"));
        };
        cellblock_jail::fds::hand_over(&*spare, &order, theirs.as_fd()).map_err(|error| Kind::Launcher {
            action: "reach a standby",
            reason: cellblock_jail::error::chain(&error),
        })?;
        drop(theirs);
        let (read, writer) = std::mem::replace(spare, ours).into_split();
        self.frames = FrameReader::new(Incoming::new(read), "kernel");
        self.writer = writer;
        self.hello(RESCUE_LIMIT, "a standby").await
    }

    /// Becomes the kernel whose process this is.
    pub(crate) fn adopt(&mut self, end: watch::Receiver<Option<Ending>>, process: OwnedFd) {
        self.end = end;
        if let Hold::Here { pidfd, .. } = &mut self.hold {
            *pidfd = Some(process);
        }
    }

    /// Waits until the kernel has locked itself down and said so.
    pub(crate) async fn ready(&mut self) -> Result<()> {
        self.hello(READY_LIMIT, "a kernel").await.map(drop)
    }

    /// Hears who speaks on the channel.
    async fn hello(&mut self, limit: Duration, what: &'static str) -> Result<u32> {
        let first = tokio::time::timeout(limit, self.frames.next())
            .await
            .map_err(|_| Kind::TooLate { what, limit })??;
        match first.map(|frame| frame.message) {
            Some(FromKernel::Hello {
                generation: GENERATION,
                pid,
                ..
            }) => {
                self.pid = pid;
                Ok(pid)
            }
            Some(FromKernel::Hello { generation, .. }) => Err(Error::protocol(
                "kernel",
                format!("it speaks generation {generation}, not {GENERATION}"),
            )),
            Some(_) => Err(Error::protocol("kernel", "its first message was not `hello`")),
            None => {
                let mut said = vec![0; 4096];
                let length = read_now(&self.stderr, &mut said).unwrap_or(0);
                let reason = String::from_utf8_lossy(&said[..length]).trim().to_owned();
                Err(Kind::launcher("start a kernel", reason).into())
            }
        }
    }

    /// Drops what is in its pipes now and nobody has read.
    pub fn discard_written(&self) {
        let mut nowhere = vec![0; 64 * 1024];
        for pipe in [&self.stdout, &self.stderr] {
            // More than a pipe holds: whoever writes all the time does not keep the host here.
            for _ in 0..64 {
                if !matches!(read_now(pipe, &mut nowhere), Ok(1..)) {
                    break;
                }
            }
        }
    }

    /// Sends SIGINT to the kernel's main process.
    pub fn interrupt(&self) {
        self.hold.interrupt();
    }

    /// Whether a message that is written now could be there before an interrupt that was sent earlier, as the kernel is another
    /// machine's. Completes when that machine has been told of the interrupt; what its [usage](Sandbox::usage) is, it says only after it
    /// has passed that on.
    pub async fn may_overtake(&self) -> bool {
        match &self.hold {
            Hold::Here { .. } => false,
            Hold::Elsewhere(signals) => {
                signals.settled().await;
                true
            }
        }
    }

    /// Sends SIGKILL to the kernel's main process.
    pub fn kill(&self) {
        self.hold.kill();
    }
}

impl Hold {
    /// Sends SIGINT to the kernel's main process.
    pub fn interrupt(&self) {
        match self {
            Self::Here { pidfd, .. } => signal(pidfd.as_ref(), rustix::process::Signal::INT),
            Self::Elsewhere(signals) => signals.interrupt(),
        }
    }

    /// Sends SIGKILL to the kernel's main process.
    pub fn kill(&self) {
        match self {
            Self::Here { pidfd, .. } => signal(pidfd.as_ref(), rustix::process::Signal::KILL),
            Self::Elsewhere(signals) => signals.kill(),
        }
    }
}

fn signal(pidfd: Option<&OwnedFd>, signal: rustix::process::Signal) {
    if let Some(pidfd) = pidfd {
        let _ = rustix::process::pidfd_send_signal(pidfd, signal);
    }
}
