//! The host's side of the launcher: starting it, and asking it.

use std::collections::HashMap;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use cellblock_guest::launcher::NAME;
use cellblock_guest::launcher::control::{Launch, LauncherEvent, LauncherReply, Operation};
use cellblock_guest::launcher::frozen::FrozenPlace;
use cellblock_jail::fds;
use cellblock_jail::protection::Report;
use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, oneshot, watch};

use super::control::{ControlSocket, Owner};
use crate::backend::ProcessEnd;
use crate::error::{DuringIo, Result, SandboxErrorKind};

/// Maximum time until the keep is ready.
const START_LIMIT: Duration = Duration::from_mins(1);
/// Maximum time for the launcher to report a kernel's exit status after its process has ended.
const STATUS_LIMIT: Duration = Duration::from_secs(2);

/// The modules that a template failed to import, or why no template can start.
pub(super) type WarmResult = Result<Vec<String>, String>;

pub(super) type Reply = Result<(LauncherReply, Vec<OwnedFd>), String>;

#[derive(Debug)]
pub(super) struct LauncherCall {
    pub(super) operation: Operation,
    pub(super) descriptors: Vec<OwnedFd>,
    pub(super) answer: Option<oneshot::Sender<Reply>>,
}

/// A running launcher. Its process ends when this is dropped.
#[derive(Debug)]
pub(super) struct Launcher {
    /// Unbounded, so that the end of a room can always be requested; other requests wait for their
    /// responses first.
    asks: mpsc::UnboundedSender<LauncherCall>,
    report: Report,
    shared: Arc<LauncherState>,
    warm: watch::Receiver<Option<WarmResult>>,
    process: LauncherProcess,
}

/// The process, and what it was started with.
#[derive(Debug, Default)]
struct LauncherProcess {
    pid: Option<u32>,
    executable: PathBuf,
    rooms: u32,
    /// Place of the frozen template that it thaws.
    frozen: Option<FrozenPlace>,
    _ids: Option<OwnedFd>,
}

#[derive(Debug, Default)]
pub(super) struct LauncherState {
    /// Ends of kernels, by number. Both the report and the request may come first.
    ends: Mutex<HashMap<u64, watch::Sender<Option<ProcessEnd>>>>,
    /// Place of the frozen template that the launcher thaws.
    frozen: Option<FrozenPlace>,
}

impl LauncherState {
    /// Removes the frozen template, which cannot be used, so that the next start makes it anew.
    pub(super) fn discard_frozen(&self) {
        if let Some(frozen) = &self.frozen {
            frozen.discard();
        }
    }

    pub(super) fn end_of(&self, kernel: u64) -> watch::Sender<Option<ProcessEnd>> {
        self.lock()
            .entry(kernel)
            .or_insert_with(|| watch::channel(None).0)
            .clone()
    }

    pub(super) fn lock(
        &self,
    ) -> parking_lot::MutexGuard<'_, HashMap<u64, watch::Sender<Option<ProcessEnd>>>> {
        self.ends.lock()
    }
}

impl Launcher {
    /// Starts the launcher process and waits until its keep is ready.
    pub(super) async fn start(
        executable: Option<&Path>,
        launch: &Launch,
        ids: Option<OwnedFd>,
    ) -> Result<Self> {
        let executable = match executable {
            Some(path) => path,
            None if cellblock_guest::can_become_launcher() => Path::new("/proc/self/exe"),
            None => return Err(SandboxErrorKind::NoLauncher.into()),
        };
        let (ours, theirs) = fds::packet_pair().map_err(super::internal)?;
        let mut command = Command::new(executable);
        command
            .arg0(NAME)
            .env_clear()
            .stdin(theirs)
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|error| SandboxErrorKind::spawn("start the launcher", error))?;
        // The command keeps a copy of the launcher's socket, which would hide the launcher's death.
        drop(command);
        let pid = child.id();
        log_errors(&mut child);
        fds::send(&ours, launch, &[]).map_err(|error| SandboxErrorKind::Launch {
            reason: cellblock_jail::error::chain(&error),
        })?;
        let process = LauncherProcess {
            pid,
            executable: executable.to_owned(),
            rooms: launch.ids.rooms(),
            frozen: launch.frozen.as_ref().map(|order| order.place().clone()),
            _ids: ids,
        };
        let ended = async move {
            let _ = child.wait().await;
        };
        Self::behind(ours, process, ended).await
    }

    /// Waits until the keep at the other end of a control socket is ready. `ended` completes when
    /// the process has.
    async fn behind(
        control: OwnedFd,
        process: LauncherProcess,
        ended: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Self> {
        let control = ControlSocket::new(control)?;
        let report = tokio::time::timeout(START_LIMIT, first_event(&control))
            .await
            .map_err(|_| SandboxErrorKind::TooLate {
                what: "the launcher",
                limit: START_LIMIT,
            })??;
        #[expect(
            clippy::disallowed_methods,
            reason = "only the host itself sends requests, and waits for each response; the end of a room \
                      must never be dropped"
        )]
        let (asks, queue) = mpsc::unbounded_channel();
        let (warm_sender, warm) = watch::channel(None);
        let shared = Arc::new(LauncherState {
            frozen: process.frozen.clone(),
            ..LauncherState::default()
        });
        let owner = Owner::new(control, Arc::clone(&shared), warm_sender);
        tokio::spawn(owner.run(queue, ended));
        Ok(Self {
            asks,
            report,
            shared,
            warm,
            process,
        })
    }

    /// Returns whether the process is known to have ended.
    pub(super) fn is_gone(&self) -> bool {
        self.asks.is_closed()
    }

    pub(super) fn report(&self) -> Report {
        self.report.clone()
    }

    /// Returns the executable that becomes a launcher or a helper.
    pub(super) fn executable(&self) -> &Path {
        &self.process.executable
    }

    /// Returns the number of rooms that can have a user id of their own.
    pub(super) fn rooms(&self) -> u32 {
        self.process.rooms
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.process.pid
    }

    pub(super) fn failed_modules(&self) -> Vec<String> {
        let warm = self.warm.borrow().clone();
        warm.and_then(Result::ok).unwrap_or_default()
    }

    /// Completes once the template has imported its libraries.
    pub(super) async fn warmed(&self) -> Result<()> {
        let mut warm = self.warm.clone();
        let warm = warm
            .wait_for(Option::is_some)
            .await
            .map_err(|_| SandboxErrorKind::LauncherGone)?;
        match warm.as_ref() {
            Some(Err(reason)) => Err(SandboxErrorKind::launch(reason.clone()).into()),
            Some(Ok(_)) | None => Ok(()),
        }
    }

    /// Sends a request and waits for the response.
    pub(super) async fn ask(
        &self,
        operation: Operation,
        descriptors: &[BorrowedFd<'_>],
        action: &'static str,
    ) -> Result<(LauncherReply, Vec<OwnedFd>)> {
        let descriptors = descriptors
            .iter()
            .map(|fd| rustix::io::fcntl_dupfd_cloexec(fd, 3))
            .collect::<Result<Vec<_>, _>>()
            .during("duplicate a descriptor")?;
        let (answer, answered) = oneshot::channel();
        let ask = LauncherCall {
            operation,
            descriptors,
            answer: Some(answer),
        };
        self.asks.send(ask).map_err(|_| SandboxErrorKind::LauncherGone)?;
        let reply = answered.await.map_err(|_| SandboxErrorKind::LauncherGone)?;
        reply.map_err(|reason| SandboxErrorKind::launcher(action, reason).into())
    }

    /// Sends a request without waiting for the response.
    pub(super) fn forget(&self, operation: Operation) {
        let _ = self.asks.send(LauncherCall {
            operation,
            descriptors: Vec::new(),
            answer: None,
        });
    }

    /// Returns a receiver for the end of a kernel, past or future.
    pub(super) fn kernel_end(&self, kernel: u64) -> watch::Receiver<Option<ProcessEnd>> {
        self.shared.end_of(kernel).subscribe()
    }

    /// Makes sure that the end of a kernel is noticed, even if its template dies before reporting
    /// it.
    pub(super) fn watch(&self, kernel: u64, pidfd: BorrowedFd<'_>) -> Result<()> {
        let pidfd = rustix::io::fcntl_dupfd_cloexec(pidfd, 3).during("duplicate a descriptor")?;
        rustix::io::ioctl_fionbio(&pidfd, true).during("make a process handle non-blocking")?;
        // Registered for readiness only, like the control socket: the descriptor becomes readable
        // when the process has ended.
        let pidfd = UnixStream::from_std(pidfd.into()).during("watch a kernel's process")?;
        let end = self.shared.end_of(kernel);
        let shared = Arc::downgrade(&self.shared);
        tokio::spawn(async move {
            if pidfd.readable().await.is_ok() {
                drop(pidfd);
                let mut told = end.subscribe();
                let told = tokio::time::timeout(STATUS_LIMIT, told.wait_for(Option::is_some)).await;
                if told.is_err() {
                    end.send_replace(Some(ProcessEnd::Unknown));
                    if let Some(shared) = shared.upgrade() {
                        shared.lock().remove(&kernel);
                    }
                }
            }
        });
        Ok(())
    }
}

fn log_errors(child: &mut Child) {
    if let Some(stderr) = child.stderr.take() {
        tokio::spawn(async move {
            let mut lines = BufReader::new(stderr).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                tracing::warn!(target: "cellblock::launcher", "{line}");
            }
        });
    }
}

async fn first_event(control: &ControlSocket) -> Result<Report> {
    match control.receive().await? {
        Some((LauncherEvent::Started { report }, _)) => Ok(report),
        Some((
            LauncherEvent::Refused {
                error,
                missing_protection: true,
            },
            _,
        )) => Err(SandboxErrorKind::MissingProtection { reason: error }.into()),
        Some((LauncherEvent::Refused { error, .. }, _)) => Err(SandboxErrorKind::launch(error).into()),
        Some(_) => Err(SandboxErrorKind::Launch {
            reason: "unexpected first packet".into(),
        }
        .into()),
        None => Err(SandboxErrorKind::Launch {
            reason: "it exited immediately".into(),
        }
        .into()),
    }
}

#[cfg(test)]
mod tests;
