//! A room, as a sandbox of the process backend.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use cellblock_guest::launcher::control::{LauncherReply, Operation};
use cellblock_jail::cgroup::Usage;
use cellblock_jail::fds;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::Mode;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use super::launcher::Launcher;
use super::slots::Slot;
use super::{internal, mounter};
use crate::backend::{BoxFuture, KeptKernel, Kernel, KernelHold, Sandbox};
use crate::error::{DuringIo, Error, Result, SandboxErrorKind};
use crate::guest::Guest;

/// One room of the launcher's keep.
#[derive(Debug)]
pub(super) struct Room {
    launcher: Arc<Launcher>,
    name: String,
    init: Option<OwnedFd>,
    guest: Option<Guest>,
    /// Released when the room is dropped.
    _slot: Slot,
}

impl Room {
    /// Owns a room before it is requested, so that it is ended even if no caller waits for the
    /// response.
    pub(super) fn claim(launcher: Arc<Launcher>, name: String, slot: Slot) -> Self {
        Self {
            launcher,
            name,
            init: None,
            guest: None,
            _slot: slot,
        }
    }

    /// Returns whether the launcher that created it still runs.
    pub(super) fn is_served(&self) -> bool {
        !self.launcher.is_gone()
    }

    /// Requests the room.
    pub(super) async fn make(&mut self, operation: Operation) -> Result<()> {
        let (ours, theirs) = fds::stream_pair().map_err(internal)?;
        let (_, mut received) = self
            .launcher
            .ask(operation, &[theirs.as_fd()], "make a room")
            .await?;
        self.init = received.pop();
        self.guest = Some(Guest::new(stream(ours)?)?);
        Ok(())
    }

    async fn kernel(&self) -> Result<Kernel> {
        let (ours, theirs) = fds::stream_pair().map_err(internal)?;
        let (spare, spare_in) = fds::stream_pair().map_err(internal)?;
        let (stdout, stdout_in) = pipe_pair()?;
        let (stderr, stderr_in) = pipe_pair()?;
        let operation = Operation::StartKernel {
            room: self.name.clone(),
        };
        let sent = [
            theirs.as_fd(),
            stdout_in.as_fd(),
            stderr_in.as_fd(),
            spare_in.as_fd(),
        ];
        let (answer, mut received) = self.launcher.ask(operation, &sent, "start a kernel").await?;
        let LauncherReply::Kernel { kernel } = answer else {
            return Err(SandboxErrorKind::Launcher {
                action: "start a kernel",
                reason: "unexpected response".into(),
            }
            .into());
        };
        let end = self.launcher.kernel_end(kernel);
        let pidfd = received.pop();
        if let Some(pidfd) = &pidfd {
            self.launcher.watch(kernel, pidfd.as_fd())?;
        }
        // Our copies of the kernel's descriptors would hide its death.
        drop((theirs, stdout_in, stderr_in, spare_in));
        let hold = KernelHold::Here {
            pidfd,
            spare: stream(spare)?,
        };
        let mut kernel = Kernel::new(stream(ours)?, stdout, stderr, end, hold)?;
        kernel.ready().await?;
        Ok(kernel)
    }

    async fn let_take_over(&self, mut kernel: Kernel, pid: u32, kept: &[u32]) -> Result<Kernel> {
        // Processes that the dead kernel left running could write to the next cell's output.
        let spared = [&[pid], kept].concat();
        self.guest().kill_all_but(&spared).await?;
        let (ours, theirs) = fds::stream_pair().map_err(internal)?;
        let pid = kernel.take_over(stream(ours)?, theirs).await?;
        let process = self.find_kernel(pid).await?;
        self.adopt(kernel, process)
    }

    async fn take_up(&self, mut kernel: Kernel, kept: &mut KeptKernel) -> Result<Kernel> {
        let (channel, channel_in) = fds::stream_pair().map_err(internal)?;
        let (spare, spare_in) = fds::stream_pair().map_err(internal)?;
        let channel = (stream(channel)?, channel_in);
        let Some(pid) = kept.pid().await else {
            return Err(Error::request("go on with a copy of a kernel that has ended"));
        };
        let (told, process) = tokio::join!(
            kernel.take_up(kept, channel, (stream(spare)?, spare_in)),
            self.find_kernel(pid)
        );
        if told? != pid {
            let problem = format!("another process than {pid} goes on in its place");
            return Err(Error::protocol("kernel", problem));
        }
        self.adopt(kernel, process?)
    }

    /// Opens the `pagemap` files of a copy and of the kernel that it is moved to. Only a privileged
    /// host sees physical addresses in them, which save the comparison of the pages.
    async fn pagemaps(&self, kept: u32, kernel: &Kernel) -> Option<Vec<File>> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let operation = Operation::FindProcess {
            room: self.name.clone(),
            pid: kept,
        };
        let (_, mut found) = self.launcher.ask(operation, &[], "find a kernel").await.ok()?;
        let KernelHold::Here { pidfd, .. } = &kernel.hold else {
            return None;
        };
        Some(vec![pagemap(&found.pop()?)?, pagemap(pidfd.as_ref()?)?])
    }

    /// Makes a process of the room that has reported to be its kernel known as that. Returns its
    /// number, and its pidfd.
    async fn find_kernel(&self, pid: u32) -> Result<(u64, OwnedFd)> {
        let operation = Operation::AdoptKernel {
            room: self.name.clone(),
            pid,
        };
        let (answer, mut received) = self.launcher.ask(operation, &[], "adopt a standby").await?;
        match (answer, received.pop()) {
            (LauncherReply::Kernel { kernel }, Some(pidfd)) => Ok((kernel, pidfd)),
            _ => Err(SandboxErrorKind::Launcher {
                action: "adopt a standby",
                reason: "unexpected response".into(),
            }
            .into()),
        }
    }

    fn adopt(&self, mut kernel: Kernel, (number, pidfd): (u64, OwnedFd)) -> Result<Kernel> {
        let end = self.launcher.kernel_end(number);
        self.launcher.watch(number, pidfd.as_fd())?;
        kernel.adopt(end, pidfd);
        kernel.discard_written();
        Ok(kernel)
    }
}

impl Sandbox for Room {
    fn id(&self) -> &str {
        &self.name
    }

    fn guest(&self) -> &Guest {
        self.guest
            .as_ref()
            .expect("a room is handed out only after its guest was set")
    }

    fn start_kernel(&self) -> BoxFuture<'_, Result<Kernel>> {
        Box::pin(self.kernel())
    }

    fn rescue<'a>(&'a self, ended: Kernel, pid: u32, kept: &'a [u32]) -> BoxFuture<'a, Result<Kernel>> {
        Box::pin(self.let_take_over(ended, pid, kept))
    }

    fn roll_back<'a>(&'a self, ended: Kernel, kept: &'a mut KeptKernel) -> BoxFuture<'a, Result<Kernel>> {
        Box::pin(self.take_up(ended, kept))
    }

    fn move_kernel<'a>(
        &'a self,
        kept: &'a mut KeptKernel,
        into: &'a dyn Sandbox,
        kernel: &'a Kernel,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            // It answers before it waits.
            let (true, Some(pid)) = (kept.is_ready().await, kept.pid) else {
                return Err(Error::request("move a copy of a kernel that has ended"));
            };
            let pagemaps = self.pagemaps(pid, kernel).await.unwrap_or_default();
            let pagemaps: Vec<_> = pagemaps.iter().map(AsFd::as_fd).collect();
            let operation = Operation::MoveKernel {
                room: self.name.clone(),
                pid,
                socket: kept.socket,
                into: into.id().to_owned(),
                target: kernel.pid,
            };
            match self.launcher.ask(operation, &pagemaps, "move a kernel").await?.0 {
                LauncherReply::Immovable(obstacle) => Err(SandboxErrorKind::Immovable(obstacle).into()),
                _ => Ok(()),
            }
        })
    }

    fn mount_data<'a>(&'a self, name: &'a str, file: &'a File, path: &'a Path) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let mount = mounter::mount_of(self.launcher.executable(), file, path).await?;
            let operation = Operation::MountData {
                room: self.name.clone(),
                name: name.to_owned(),
            };
            let answered = self.launcher.ask(operation, &[mount.as_fd()], "mount data").await;
            answered.map(drop)
        })
    }

    fn usage(&self) -> BoxFuture<'_, Result<Usage>> {
        Box::pin(async {
            let operation = Operation::Usage {
                room: self.name.clone(),
            };
            match self.launcher.ask(operation, &[], "ask for usage").await? {
                (LauncherReply::Usage(usage), _) => Ok(usage),
                _ => Ok(Usage::default()),
            }
        })
    }

    fn kill(&self) {
        if let Some(init) = &self.init {
            cellblock_jail::walled::signal(init, rustix::process::Signal::KILL);
        }
    }

    fn destroy(mut self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            let operation = Operation::DestroyRoom {
                room: std::mem::take(&mut self.name),
            };
            match self.launcher.ask(operation, &[], "end a room").await {
                // A room never outlives its launcher.
                Err(_) if self.launcher.is_gone() => Ok(()),
                ended => ended.map(drop),
            }
        })
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if !self.name.is_empty() {
            self.kill();
            self.launcher.forget(Operation::DestroyRoom {
                room: std::mem::take(&mut self.name),
            });
        }
    }
}

/// Opens the `pagemap` file of a process that lives.
fn pagemap(pidfd: &OwnedFd) -> Option<File> {
    let about = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd())).ok()?;
    let pid = about.lines().find_map(|line| line.strip_prefix("Pid:"))?;
    let opened = File::open(format!("/proc/{}/pagemap", pid.trim())).ok()?;
    // If it still lives, nobody else has had its number.
    let mut ended = [PollFd::new(pidfd, PollFlags::IN)];
    let lives = poll(&mut ended, Some(&Timespec::default())) == Ok(0);
    lives.then_some(opened)
}

fn stream(fd: OwnedFd) -> Result<UnixStream> {
    rustix::io::ioctl_fionbio(&fd, true).during("make a channel non-blocking")?;
    UnixStream::from_std(fd.into()).during("watch a channel")
}

fn pipe_pair() -> Result<(pipe::Receiver, OwnedFd)> {
    let (ours, theirs) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).during("make a pipe")?;
    rustix::io::ioctl_fionbio(&ours, true).during("make a pipe non-blocking")?;
    // Code opens it again as `/dev/stdout`, under a user id that may differ from this process's.
    // Only the pipe's owners have a path to it.
    match rustix::fs::fchmod(&theirs, Mode::from_raw_mode(0o622)) {
        // gVisor's pipes have a fixed mode; there, code can write to its output but not open it again.
        Err(rustix::io::Errno::PERM) if cellblock_jail::walled::is_declared() => {}
        changed => changed.during("let a sandbox open its output")?,
    }
    Ok((
        pipe::Receiver::from_owned_fd(ours).during("watch a pipe")?,
        theirs,
    ))
}
