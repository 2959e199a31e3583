//! How sandboxes are made. Each backend is a wall around the same guest and kernel, and a way to carry their bytes.

use std::future::Future;
use std::os::fd::OwnedFd;
use std::pin::Pin;

pub use cellblock_jail::cgroup::Usage;
pub use cellblock_jail::process::Ending;
use cellblock_jail::protection::Report;
use tokio::sync::watch;

use crate::error::Result;
use crate::guest::Guest;
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

    /// Starts a kernel. Only one may run at a time.
    fn start_kernel(&self) -> BoxFuture<'_, Result<KernelIo>>;

    /// What has been used since the sandbox was made.
    fn usage(&self) -> BoxFuture<'_, Result<Usage>>;

    /// Kills everything inside at once; what was held for it is given back when the sandbox is dropped.
    fn kill(&self);

    /// Ends it and completes when everything that was held for it has been given back.
    fn destroy(self: Box<Self>) -> BoxFuture<'static, Result<()>>;
}

/// The byte channels of a running kernel, and its end.
#[derive(Debug)]
pub struct KernelIo {
    /// Frames, both ways.
    pub channel: tokio::net::UnixStream,
    /// What was written to descriptor 1 by anything in the kernel's process tree.
    pub stdout: tokio::net::unix::pipe::Receiver,
    /// The same for descriptor 2.
    pub stderr: tokio::net::unix::pipe::Receiver,
    /// Becomes `Some` when the kernel's process has ended.
    pub end: watch::Receiver<Option<Ending>>,
    /// Signals the kernel without naming a pid.
    pub(crate) pidfd: Option<OwnedFd>,
}

impl KernelIo {
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
