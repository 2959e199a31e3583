//! The process backend: rooms made of namespaces, and kernels forked from a template. Needs Linux and nothing else.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cellblock_guest::launcher::control::{Answer, Launch, Operation};
use cellblock_jail::cgroup::Usage;
use cellblock_jail::fds;
use cellblock_jail::protection::{Demands, Protection, Report};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use super::{Backend, BoxFuture, Kernel, Sandbox};
use crate::error::{During, Kind, Result};
use crate::guest::Guest;
use crate::limits::Limits;

mod ids;
mod launcher;

use launcher::Launcher;

pub use ids::has_full_id_range;

/// What a process backend is started with.
#[derive(Clone, Debug)]
pub struct ProcessConfig {
    /// The image's `python` directory on the host.
    pub python: PathBuf,
    /// The interpreter's file name below `bin`.
    pub interpreter: String,
    /// A directory below `python` that the loader must search, if there is one.
    pub library_path: Option<String>,
    /// The directory of requirement layers, made visible read-only.
    pub layers: Option<PathBuf>,
    /// Modules that the template imports.
    pub preload: Vec<String>,
    /// What is asked of each protection.
    pub demands: Demands,
    /// An executable that calls [`cellblock_guest::boot`]; by default this program itself, which then must.
    pub launcher: Option<PathBuf>,
}

/// Makes sandboxes out of this machine's own kernel.
#[derive(Clone, Debug)]
pub struct ProcessBackend {
    launcher: Arc<Launcher>,
    next: Arc<AtomicU32>,
}

/// How long the template may take to import the image's libraries on a busy machine.
const WARM_LIMIT: Duration = Duration::from_mins(3);

impl ProcessBackend {
    /// Starts the launcher and, inside its keep, the template. Returns once rooms can be made.
    pub async fn start(config: &ProcessConfig) -> Result<Self> {
        let (ids, held) = ids::choose()?;
        let launch = Launch {
            ids,
            demands: config.demands.clone(),
            python: config.python.clone(),
            interpreter: config.interpreter.clone(),
            library_path: config.library_path.clone(),
            layers: config.layers.clone(),
            preload: config.preload.clone(),
        };
        let launcher = Launcher::start(config.launcher.as_deref(), &launch, held).await?;
        Ok(Self {
            launcher: Arc::new(launcher),
            next: Arc::new(AtomicU32::new(0)),
        })
    }

    /// Modules of the image that the template could not import, with reasons; empty until it is warm.
    pub fn failed_modules(&self) -> Vec<String> {
        self.launcher.failed_modules()
    }

    /// The process id of the launcher.
    pub fn launcher_pid(&self) -> Option<u32> {
        self.launcher.pid()
    }

    async fn create_room(&self, limits: &Limits) -> Result<Box<dyn Sandbox>> {
        let slot = self.next.fetch_add(1, Ordering::Relaxed);
        let room = format!("room-{slot}");
        let (ours, theirs) = fds::stream_pair().map_err(internal)?;
        let report = self.launcher.report();
        let limits = limits.room(
            report.is_active(Protection::MemoryCgroup),
            report.is_active(Protection::ProcessCgroup),
        );
        let operation = Operation::CreateRoom {
            room: room.clone(),
            slot,
            limits,
        };
        let mut made = Room {
            launcher: Arc::clone(&self.launcher),
            name: room,
            init: None,
            guest: None,
        };
        let (_, mut received) = self
            .launcher
            .ask(operation, &[theirs.as_fd()], "make a room")
            .await?;
        made.init = received.pop();
        made.guest = Some(Guest::new(stream(ours)?));
        Ok(Box::new(made))
    }
}

impl Backend for ProcessBackend {
    fn name(&self) -> &'static str {
        "process"
    }

    fn report(&self) -> Report {
        self.launcher.report()
    }

    fn create<'a>(&'a self, limits: &'a Limits) -> BoxFuture<'a, Result<Box<dyn Sandbox>>> {
        Box::pin(self.create_room(limits))
    }

    fn warmed(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            tokio::time::timeout(WARM_LIMIT, self.launcher.warmed())
                .await
                .map_err(|_| Kind::TooLate {
                    what: "the image's template",
                    limit: WARM_LIMIT,
                })?
        })
    }
}

/// One room of the launcher's keep.
#[derive(Debug)]
struct Room {
    launcher: Arc<Launcher>,
    name: String,
    init: Option<OwnedFd>,
    guest: Option<Guest>,
}

impl Room {
    async fn kernel(&self) -> Result<Kernel> {
        let (ours, theirs) = fds::stream_pair().map_err(internal)?;
        let (stdout, stdout_in) = pipe_pair()?;
        let (stderr, stderr_in) = pipe_pair()?;
        let operation = Operation::StartKernel {
            room: self.name.clone(),
        };
        let sent = [theirs.as_fd(), stdout_in.as_fd(), stderr_in.as_fd()];
        let (answer, mut received) = self.launcher.ask(operation, &sent, "start a kernel").await?;
        let Answer::Kernel { kernel } = answer else {
            return Err(Kind::Launcher {
                action: "start a kernel",
                reason: "answered something else".into(),
            }
            .into());
        };
        let end = self.launcher.kernel_end(kernel);
        // Our copies of the kernel's ends would hide its death.
        drop((theirs, stdout_in, stderr_in));
        let mut kernel = Kernel::new(stream(ours)?, stdout, stderr, end, received.pop());
        kernel.ready().await?;
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

    fn usage(&self) -> BoxFuture<'_, Result<Usage>> {
        Box::pin(async {
            let operation = Operation::Usage {
                room: self.name.clone(),
            };
            match self.launcher.ask(operation, &[], "ask for usage").await? {
                (Answer::Usage(usage), _) => Ok(usage),
                _ => Ok(Usage::default()),
            }
        })
    }

    fn kill(&self) {
        if let Some(init) = &self.init {
            let _ = rustix::process::pidfd_send_signal(init, rustix::process::Signal::KILL);
        }
    }

    fn destroy(mut self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            let operation = Operation::DestroyRoom {
                room: std::mem::take(&mut self.name),
            };
            self.launcher.ask(operation, &[], "end a room").await.map(drop)
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

#[expect(clippy::needless_pass_by_value, reason = "the form that map_err takes")]
fn internal(error: cellblock_jail::Error) -> crate::Error {
    Kind::Launcher {
        action: "prepare descriptors",
        reason: cellblock_jail::error::chain(&error),
    }
    .into()
}

fn stream(fd: OwnedFd) -> Result<UnixStream> {
    rustix::io::ioctl_fionbio(&fd, true).during("make a channel non-blocking")?;
    UnixStream::from_std(fd.into()).during("watch a channel")
}

fn pipe_pair() -> Result<(pipe::Receiver, OwnedFd)> {
    let (ours, theirs) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).during("make a pipe")?;
    rustix::io::ioctl_fionbio(&ours, true).during("make a pipe non-blocking")?;
    Ok((
        pipe::Receiver::from_owned_fd(ours).during("watch a pipe")?,
        theirs,
    ))
}
