//! Creation of sandboxes. Each backend isolates the same guest and kernel in its own way and
//! transports their bytes.

use std::fs::File;
use std::future::Future;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

pub use cellblock_jail::cgroup::Usage;
pub use cellblock_jail::process::ProcessEnd;
use cellblock_jail::protection::Report;
use cellblock_protocol::{FrameLimits, FromKernel, GENERATION, ToKernel, encode};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::sync::watch;

use crate::alarm::Alarm;
use crate::channel::FrameReader;
use crate::error::{DuringIo, Error, Result, SandboxErrorKind};
use crate::guest::Guest;
use crate::incoming::{SocketReader, SocketWriter, split};
use crate::limits::Limits;

mod dormant;
mod kept;
mod kind;
mod kubernetes;
mod lack;
mod order;
pub mod process;

pub use dormant::{DormantSandbox, Lease, SandboxBranches, Suspension};
pub use kept::KeptKernel;
pub use kind::{BackendChoice, BackendKind};
pub use kubernetes::{KubernetesOptions, Serves};
pub use lack::Lack;
pub use order::read_in_order;

/// A boxed future, for traits whose implementation is chosen at run time.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Creates sandboxes.
pub trait Backend: Send + Sync + std::fmt::Debug {
    /// The backend's name in reports and configuration.
    fn name(&self) -> &'static str;

    /// Returns what stands around sandboxes beside the host's own kernel, with its version and platform.
    fn wall(&self) -> Option<&str> {
        None
    }

    /// Returns what sandboxes of this backend lack beside those of the process backend.
    fn lacks(&self) -> &'static [Lack] {
        &[]
    }

    /// Returns whether its sandboxes can be [suspended](Sandbox::suspend) and [branched](Sandbox::branch).
    fn suspends(&self) -> bool {
        false
    }

    /// Returns the protections of every sandbox of this backend.
    fn report(&self) -> Report;

    /// Creates a sandbox whose guest runs but that has no kernel yet.
    fn create<'a>(&'a self, limits: &'a Limits) -> BoxFuture<'a, Result<Box<dyn Sandbox>>>;

    /// Completes once kernels start without waiting for the image's libraries.
    fn warmed(&self) -> BoxFuture<'_, Result<()>>;
}

/// An isolated environment, destroyed when dropped.
pub trait Sandbox: Send + Sync + std::fmt::Debug {
    /// Returns the sandbox's id, unique on this host.
    fn id(&self) -> &str;

    /// Returns the guest, for files, commands and interrupts.
    fn guest(&self) -> &Guest;

    /// Starts a kernel and waits until it is ready. Only one may run at a time.
    fn start_kernel(&self) -> BoxFuture<'_, Result<Kernel>>;

    /// Lets the standby of an ended kernel take over: everything else in the sandbox except kept
    /// copies of kernels is killed, then `pid`, which the kernel reported as its standby, continues in
    /// its place. Unread output in the pipes is dropped.
    fn rescue<'a>(&'a self, ended: Kernel, pid: u32, kept: &'a [u32]) -> BoxFuture<'a, Result<Kernel>>;

    /// Makes a kept copy of a kernel the kernel, in the place of an ended one that has the same
    /// output. Later another copy is kept in its place. The caller has killed everything else.
    /// Backends that lack checkpoints report an error.
    fn roll_back<'a>(&'a self, _ended: Kernel, _kept: &'a mut KeptKernel) -> BoxFuture<'a, Result<Kernel>> {
        Box::pin(async { Err(Error::request("roll back a kernel that another machine has")) })
    }

    /// Moves a kept copy of this sandbox's kernel into the fresh kernel of another sandbox of the
    /// same backend, whose kernel then [arrives](Kernel::arrive). After an error the other sandbox
    /// must be destroyed; this one is never changed. Backends that lack forks report an error.
    fn move_kernel<'a>(
        &'a self,
        _kept: &'a mut KeptKernel,
        _into: &'a dyn Sandbox,
        _kernel: &'a Kernel,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async { Err(Error::request("move a kernel that another machine has")) })
    }

    /// Writes the state of the sandbox and its idle kernel to files of the host, and ends all
    /// processes. Commands and connections of the guest must have ended. After an error, the
    /// sandbox is lost. Only for backends that [suspend](Backend::suspends) sandboxes.
    fn suspend(self: Box<Self>, _kernel: Kernel) -> BoxFuture<'static, Result<Suspension>> {
        Box::pin(async { Err(Error::request("suspend a sandbox of this backend")) })
    }

    /// Makes sandboxes that begin with the state of this one and its idle kernel: all, or none. The
    /// same conditions hold. Nothing that makes random numbers is seeded anew in them.
    fn branch(
        self: Box<Self>,
        _kernel: Kernel,
        _count: usize,
    ) -> BoxFuture<'static, Result<SandboxBranches>> {
        Box::pin(async { Err(Error::request("branch a sandbox of this backend")) })
    }

    /// Mounts a file, read-only, over an existing file of `/tmp/data`. `path` is the file's own
    /// path; it appears in the sandbox's mount table.
    fn mount_data<'a>(&'a self, name: &'a str, file: &'a File, path: &'a Path) -> BoxFuture<'a, Result<()>>;

    /// Shows a directory of packages, read-only, as `/opt/layers/<id>`. Sandboxes that see the
    /// host's directory of layers need not do anything.
    fn show_layer<'a>(&'a self, _id: &'a str, _directory: &'a Path) -> BoxFuture<'a, Result<()>> {
        Box::pin(async { Ok(()) })
    }

    /// Returns the resource usage since the sandbox was created.
    fn usage(&self) -> BoxFuture<'_, Result<Usage>>;

    /// Returns the error for a sandbox that is lost because what had it is gone, such as the other
    /// machine.
    fn lost(&self) -> Option<Error> {
        None
    }

    /// Kills everything inside immediately; dropping the sandbox releases its resources.
    fn kill(&self);

    /// Ends the sandbox and completes when all its resources have been released.
    fn destroy(self: Box<Self>) -> BoxFuture<'static, Result<()>>;
}

/// A running kernel: its frames in both directions, its output, and its end.
#[derive(Debug)]
pub struct Kernel {
    /// Frames from the kernel.
    pub frames: FrameReader<SocketReader, FromKernel>,
    /// Frames to the kernel; see [`write_frame`](crate::channel::write_frame).
    pub writer: SocketWriter,
    /// Pipe with everything that the kernel's process tree wrote to descriptor 1.
    pub stdout: pipe::Receiver,
    /// Pipe with everything that the kernel's process tree wrote to descriptor 2.
    pub stderr: pipe::Receiver,
    /// Becomes `Some` when the kernel's process has ended.
    pub end: watch::Receiver<Option<ProcessEnd>>,
    /// Process id in the sandbox, which the kernel sent before any user code ran.
    pub pid: u32,
    /// Handle for signals.
    pub hold: KernelHold,
    /// Timer for the deadlines of its cells.
    pub alarm: Alarm,
}

/// The way to reach a kernel other than its channel.
#[derive(Debug)]
pub enum KernelHold {
    /// The kernel is a process of this machine.
    Here {
        /// Signals the kernel without naming a pid; inside a wall, the socket that replaces it.
        pidfd: Option<OwnedFd>,
        /// Socket to the kernel's standby, used only for the order to take over.
        spare: UnixStream,
    },
    /// The kernel is elsewhere, and this signals it.
    Elsewhere(Arc<dyn Signal>),
}

/// Signals a kernel of another machine.
pub trait Signal: Send + Sync + std::fmt::Debug {
    /// Sends SIGINT, possibly later.
    fn interrupt(&self);

    /// Sends SIGKILL, possibly later.
    fn kill(&self);

    /// Completes when the other machine has received the interrupts that were sent until now.
    fn settled(&self) -> BoxFuture<'_, ()>;
}

/// Reads the available data of a kernel's pipe or socket; returns an error of the kind `WouldBlock`
/// if there is none.
///
/// Tokio's own `try_read` relies on the readiness that it last received. A frame can be read before
/// that is up to date, and data written before the frame would be missed.
pub fn read_now<F: AsFd>(pipe: F, buffer: &mut [u8]) -> std::io::Result<usize> {
    Ok(rustix::io::retry_on_intr(|| {
        rustix::io::read(&pipe, &mut *buffer)
    })?)
}

/// Returns which of a kernel's pipes have something to read now, or an end.
pub fn written(pipes: [&pipe::Receiver; 2]) -> [bool; 2] {
    let mut states = pipes.map(|pipe| PollFd::new(pipe, PollFlags::IN));
    match rustix::io::retry_on_intr(|| poll(&mut states, Some(&Timespec::default()))) {
        Ok(_) => states.map(|state| !state.revents().is_empty()),
        // Reading tells what is wrong.
        Err(_) => [true; 2],
    }
}

/// Time to keep reading after a kernel exits: its exit can be reported before its last frame is
/// readable.
pub const LAST_WORDS: Duration = Duration::from_millis(100);
/// Maximum time for a standby to report that it has taken over.
const RESCUE_LIMIT: Duration = Duration::from_secs(10);
/// Maximum time between a kernel's fork and its first message.
const READY_LIMIT: Duration = Duration::from_mins(1);

impl Kernel {
    /// Takes over the channels of a starting kernel.
    pub(crate) fn new(
        channel: UnixStream,
        stdout: pipe::Receiver,
        stderr: pipe::Receiver,
        end: watch::Receiver<Option<ProcessEnd>>,
        hold: KernelHold,
    ) -> Result<Self> {
        let (read, writer) = split(channel).during("watch a channel")?;
        Ok(Self {
            frames: FrameReader::new(read, "kernel"),
            writer,
            stdout,
            stderr,
            end,
            pid: 0,
            hold,
            alarm: Alarm::default(),
        })
    }

    /// Returns a kernel of another machine, whose channels a backend transports; `pid` is its
    /// process id in the sandbox.
    pub fn elsewhere(
        channel: UnixStream,
        stdout: pipe::Receiver,
        stderr: pipe::Receiver,
        end: watch::Receiver<Option<ProcessEnd>>,
        pid: u32,
        signal: Arc<dyn Signal>,
    ) -> Result<Self> {
        let kernel = Self::new(channel, stdout, stderr, end, KernelHold::Elsewhere(signal))?;
        Ok(Self { pid, ..kernel })
    }

    /// Orders the standby to take over, with the other end of a new spare channel; returns the
    /// process that reports doing so.
    pub(crate) async fn take_over(&mut self, ours: UnixStream, theirs: OwnedFd) -> Result<u32> {
        let order = encode(&ToKernel::TakeOver { reseed: None }, &[], &FrameLimits::default())
            .map_err(|error| Error::protocol("host", error.to_string()))?;
        let KernelHold::Here { spare, .. } = &mut self.hold else {
            return Err(Error::request("order a standby that another machine has"));
        };
        cellblock_jail::fds::hand_over(&*spare, &order, &[theirs.as_fd()]).map_err(|error| {
            SandboxErrorKind::Launcher {
                action: "reach a standby",
                reason: cellblock_jail::error::chain(&error),
            }
        })?;
        drop(theirs);
        let (read, writer) = split(std::mem::replace(spare, ours)).during("watch a channel")?;
        self.frames = FrameReader::new(read, "kernel");
        self.writer = writer;
        self.hello(RESCUE_LIMIT, "a standby").await
    }

    /// Orders a kept copy to go on as the kernel with the other ends of new channels; returns the
    /// process that reports being it.
    pub(crate) async fn take_up(
        &mut self,
        kept: &mut KeptKernel,
        channel: (UnixStream, OwnedFd),
        next_spare: (UnixStream, OwnedFd),
    ) -> Result<u32> {
        let KernelHold::Here { spare, .. } = &mut self.hold else {
            return Err(Error::request("order a copy that another machine has"));
        };
        let (channel, theirs) = channel;
        let (next_spare, next_spare_in) = next_spare;
        kept.order(theirs.as_fd(), next_spare_in.as_fd())?;
        // Our copies would hide its end.
        drop((theirs, next_spare_in));
        *spare = next_spare;
        let (read, writer) = split(channel).during("watch a channel")?;
        self.frames = FrameReader::new(read, "kernel");
        self.writer = writer;
        self.hello(RESCUE_LIMIT, "a kept copy of a kernel").await
    }

    /// Sets the process of the kernel.
    pub(crate) fn adopt(&mut self, end: watch::Receiver<Option<ProcessEnd>>, process: OwnedFd) {
        self.end = end;
        if let KernelHold::Here { pidfd, .. } = &mut self.hold {
            *pidfd = Some(process);
        }
    }

    /// Waits until the kernel has locked itself down and reported it.
    pub(crate) async fn ready(&mut self) -> Result<()> {
        self.hello(READY_LIMIT, "a kernel").await.map(drop)
    }

    /// Receives the first message of the channel's peer.
    async fn hello(&mut self, limit: Duration, what: &'static str) -> Result<u32> {
        let first = self.first_message(limit, what).await?;
        self.greeted(first.as_ref())
    }

    async fn first_message(&mut self, limit: Duration, what: &'static str) -> Result<Option<FromKernel>> {
        let first = tokio::time::timeout(limit, self.frames.next())
            .await
            .map_err(|_| SandboxErrorKind::TooLate { what, limit })??;
        Ok(first.map(|frame| frame.message))
    }

    /// Takes the process id from the first message, which must be `hello`.
    fn greeted(&mut self, first: Option<&FromKernel>) -> Result<u32> {
        match first {
            Some(FromKernel::Hello {
                generation: GENERATION,
                pid,
                ..
            }) => {
                self.pid = *pid;
                Ok(*pid)
            }
            Some(FromKernel::Hello { generation, .. }) => Err(Error::protocol(
                "kernel",
                format!("its protocol generation is {generation}, not {GENERATION}"),
            )),
            Some(_) => Err(Error::protocol("kernel", "its first message was not `hello`")),
            None => {
                let mut said = vec![0; 4096];
                let length = read_now(&self.stderr, &mut said).unwrap_or(0);
                let reason = String::from_utf8_lossy(&said[..length]).trim().to_owned();
                Err(SandboxErrorKind::launcher("start a kernel", reason).into())
            }
        }
    }

    /// Discards the unread data in its pipes, and returns the number of bytes.
    pub fn discard_written(&self) -> usize {
        let pipes = [&self.stdout, &self.stderr];
        let mut discarded = 0;
        for (pipe, _) in pipes
            .into_iter()
            .zip(written(pipes))
            .filter(|(_, written)| *written)
        {
            let mut nowhere = vec![0; 64 * 1024];
            // More than a pipe can hold: a process that writes continuously must not block the host
            // here.
            for _ in 0..64 {
                match read_now(pipe, &mut nowhere) {
                    Ok(length @ 1..) => discarded += length,
                    _ => break,
                }
            }
        }
        discarded
    }

    /// Sends SIGINT to the kernel's main process.
    pub fn interrupt(&self) {
        self.hold.interrupt();
    }

    /// Returns whether a message that is written now could arrive before an interrupt that was sent
    /// earlier, because the kernel is on another machine. Completes when that machine has received
    /// the interrupt; it reports the [usage](Sandbox::usage) only after it has passed the interrupt
    /// on.
    pub async fn may_overtake(&self) -> bool {
        match &self.hold {
            KernelHold::Here { .. } => false,
            KernelHold::Elsewhere(signals) => {
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

impl KernelHold {
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
        cellblock_jail::walled::signal(pidfd, signal);
    }
}
