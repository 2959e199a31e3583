//! The host's side of the launcher: one task owns the control socket and serves requests of the
//! others.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cellblock_guest::launcher::NAME;
use cellblock_guest::launcher::control::{Launch, LauncherEvent, LauncherReply, LauncherRequest, Operation};
use cellblock_jail::fds;
use cellblock_jail::protection::Report;
use tokio::io::{AsyncBufReadExt, BufReader, Interest};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, oneshot, watch};

use crate::backend::Ending;
use crate::error::{During, Kind, Result};

/// Maximum time until the keep is ready.
const START_LIMIT: Duration = Duration::from_secs(20);
/// Maximum time for the launcher to report a kernel's exit status after its process has ended.
const STATUS_LIMIT: Duration = Duration::from_secs(2);

/// The modules that a template failed to import, or why no template can start.
type Warm = Result<Vec<String>, String>;

type Reply = Result<(LauncherReply, Vec<OwnedFd>), String>;

#[derive(Debug)]
struct Ask {
    operation: Operation,
    descriptors: Vec<OwnedFd>,
    answer: Option<oneshot::Sender<Reply>>,
}

/// A running launcher. Its process ends when this is dropped.
#[derive(Debug)]
pub(super) struct Launcher {
    /// Unbounded, so that the end of a room can always be requested; other requests wait for their
    /// responses first.
    asks: mpsc::UnboundedSender<Ask>,
    report: Report,
    shared: Arc<Shared>,
    warm: watch::Receiver<Option<Warm>>,
    pid: Option<u32>,
    executable: PathBuf,
    rooms: u32,
    _ids: Option<OwnedFd>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Ends of kernels, by number. Both the report and the request may come first.
    ends: Mutex<HashMap<u64, watch::Sender<Option<Ending>>>>,
}

impl Shared {
    fn end_of(&self, kernel: u64) -> watch::Sender<Option<Ending>> {
        self.lock()
            .entry(kernel)
            .or_insert_with(|| watch::channel(None).0)
            .clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u64, watch::Sender<Option<Ending>>>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
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
            None => return Err(Kind::NoLauncher.into()),
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
            .map_err(|error| Kind::spawn("start the launcher", error))?;
        // The command keeps a copy of the launcher's socket, which would hide the launcher's death.
        drop(command);
        let pid = child.id();
        log_errors(&mut child);
        fds::send(&ours, launch, &[]).map_err(|error| Kind::Launch {
            reason: cellblock_jail::error::chain(&error),
        })?;
        rustix::io::ioctl_fionbio(&ours, true).during("make the control socket non-blocking")?;
        let control = Control(UnixStream::from_std(ours.into()).during("watch the control socket")?);
        let report = tokio::time::timeout(START_LIMIT, first_event(&control))
            .await
            .map_err(|_| Kind::TooLate {
                what: "the launcher",
                limit: START_LIMIT,
            })??;
        #[expect(
            clippy::disallowed_methods,
            reason = "only the host itself sends requests, and waits for each response; the end of a room must never be dropped"
        )]
        let (asks, queue) = mpsc::unbounded_channel();
        let (warm_sender, warm) = watch::channel(None);
        let shared = Arc::new(Shared::default());
        let owner = Owner {
            control,
            shared: Arc::clone(&shared),
            warm: warm_sender,
            waiting: HashMap::new(),
            outgoing: None,
            next: 0,
        };
        tokio::spawn(owner.run(queue, child));
        Ok(Self {
            asks,
            report,
            shared,
            warm,
            pid,
            executable: executable.to_owned(),
            rooms: launch.ids.rooms(),
            _ids: ids,
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
        &self.executable
    }

    /// Returns the number of rooms that can have a user id of their own.
    pub(super) fn rooms(&self) -> u32 {
        self.rooms
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.pid
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
            .map_err(|_| Kind::LauncherGone)?;
        match warm.as_ref() {
            Some(Err(reason)) => Err(Kind::launch(reason.clone()).into()),
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
        let ask = Ask {
            operation,
            descriptors,
            answer: Some(answer),
        };
        self.asks.send(ask).map_err(|_| Kind::LauncherGone)?;
        let reply = answered.await.map_err(|_| Kind::LauncherGone)?;
        reply.map_err(|reason| Kind::launcher(action, reason).into())
    }

    /// Sends a request without waiting for the response.
    pub(super) fn forget(&self, operation: Operation) {
        let _ = self.asks.send(Ask {
            operation,
            descriptors: Vec::new(),
            answer: None,
        });
    }

    /// Returns a receiver for the end of a kernel, past or future.
    pub(super) fn kernel_end(&self, kernel: u64) -> watch::Receiver<Option<Ending>> {
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
                    end.send_replace(Some(Ending::Unknown));
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

async fn first_event(control: &Control) -> Result<Report> {
    match receive(control).await? {
        Some((LauncherEvent::Started { report }, _)) => Ok(report),
        Some((
            LauncherEvent::Refused {
                error,
                missing_protection: true,
            },
            _,
        )) => Err(Kind::MissingProtection { reason: error }.into()),
        Some((LauncherEvent::Refused { error, .. }, _)) => Err(Kind::launch(error).into()),
        Some(_) => Err(Kind::Launch {
            reason: "unexpected first packet".into(),
        }
        .into()),
        None => Err(Kind::Launch {
            reason: "it exited immediately".into(),
        }
        .into()),
    }
}

/// The packet socket, wrapped in tokio's stream type, which only waits for readiness and leaves the
/// calls to us.
#[derive(Debug)]
struct Control(UnixStream);

async fn receive(Control(socket): &Control) -> Result<Option<(LauncherEvent, Vec<OwnedFd>)>> {
    socket
        .async_io(Interest::READABLE, || {
            fds::receive(socket.as_fd()).map_err(io_error)
        })
        .await
        .during("receive from the launcher")
}

async fn send(Control(socket): &Control, outgoing: Option<&Outgoing>) -> Result<()> {
    let Some(outgoing) = outgoing else {
        return std::future::pending().await;
    };
    let borrowed: Vec<_> = outgoing.descriptors.iter().map(AsFd::as_fd).collect();
    socket
        .async_io(Interest::WRITABLE, || {
            fds::send(socket.as_fd(), &outgoing.request, &borrowed).map_err(io_error)
        })
        .await
        .during("send to the launcher")
}

/// Preserves the kind `WouldBlock`, which `async_io` needs.
pub(super) fn io_error(error: cellblock_jail::Error) -> std::io::Error {
    match error {
        cellblock_jail::Error::Step { source, .. } => source,
        other => std::io::Error::other(other),
    }
}

/// The task that owns the control socket.
#[derive(Debug)]
struct Owner {
    control: Control,
    shared: Arc<Shared>,
    warm: watch::Sender<Option<Warm>>,
    waiting: HashMap<u64, oneshot::Sender<Reply>>,
    /// The packet to send next. Events are received meanwhile: a keep that cannot send its replies
    /// does not accept requests.
    outgoing: Option<Outgoing>,
    next: u64,
}

#[derive(Debug)]
struct Outgoing {
    request: LauncherRequest,
    descriptors: Vec<OwnedFd>,
    answer: Option<oneshot::Sender<Reply>>,
}

impl Owner {
    async fn run(mut self, mut queue: mpsc::UnboundedReceiver<Ask>, mut child: Child) {
        loop {
            tokio::select! {
                event = receive(&self.control) => match event {
                    Ok(Some((event, descriptors))) => self.hear(event, descriptors),
                    Ok(None) => break,
                    Err(error) => {
                        tracing::error!(error = &error as &dyn std::error::Error, "lost the launcher");
                        break;
                    }
                },
                ask = queue.recv(), if self.outgoing.is_none() => match ask {
                    Some(ask) => self.take(ask),
                    None => break,
                },
                sent = send(&self.control, self.outgoing.as_ref()) => self.sent(sent),
            }
        }
        // From here on, all callers see that it has ended.
        drop(queue);
        let ends = std::mem::take(&mut *self.shared.lock());
        for end in ends.into_values() {
            end.send_replace(Some(Ending::Unknown));
        }
        // Closing the socket ends the keep and everything in it; waiting prevents a zombie.
        drop(self);
        let _ = child.wait().await;
    }

    fn take(&mut self, ask: Ask) {
        self.next += 1;
        self.outgoing = Some(Outgoing {
            request: LauncherRequest {
                id: self.next,
                operation: ask.operation,
            },
            descriptors: ask.descriptors,
            answer: ask.answer,
        });
    }

    fn sent(&mut self, result: Result<()>) {
        let Some(Outgoing {
            request,
            answer: Some(answer),
            ..
        }) = self.outgoing.take()
        else {
            return;
        };
        match result {
            Ok(()) => drop(self.waiting.insert(request.id, answer)),
            // The end of the socket reveals that the launcher has ended, and then no caller waits
            // any more.
            Err(error) if error.is_broken_pipe() => drop(answer),
            Err(error) => drop(answer.send(Err(cellblock_jail::error::chain(&error)))),
        }
    }

    fn hear(&mut self, event: LauncherEvent, descriptors: Vec<OwnedFd>) {
        match event {
            LauncherEvent::Reply { id, result } => {
                if let Some(answer) = self.waiting.remove(&id) {
                    let _ = answer.send(result.map(|answer| (answer, descriptors)));
                }
            }
            LauncherEvent::KernelEnded { kernel, status } => {
                let end = self.shared.end_of(kernel);
                end.send_replace(Some(Ending::from_status(status)));
                let mut ends = self.shared.lock();
                // A receiver created later would find nothing; kernels whose start was never
                // confirmed have none.
                if end.receiver_count() > 0 {
                    ends.remove(&kernel);
                }
            }
            LauncherEvent::TemplateReady { failed, import_ms } => {
                tracing::info!(import_ms, failed = failed.len(), "template ready");
                self.warm.send_replace(Some(Ok(failed)));
            }
            LauncherEvent::TemplateFailed { reason } => {
                tracing::warn!(reason, "cannot start a template");
                self.warm.send_replace(Some(Err(reason)));
            }
            LauncherEvent::TemplateEnded => tracing::warn!("template ended"),
            LauncherEvent::Started { .. } | LauncherEvent::Refused { .. } => {
                tracing::warn!("unexpected packet from the launcher");
            }
        }
    }
}
