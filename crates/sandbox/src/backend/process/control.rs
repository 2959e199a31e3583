//! The control socket of a launcher, and the task that owns it and serves the requests of the others.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use cellblock_guest::launcher::control::{LauncherEvent, LauncherRequest};
use cellblock_jail::fds;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot, watch};

use super::launcher::{LauncherCall, LauncherState, Reply, WarmResult};
use crate::backend::ProcessEnd;
use crate::error::{DuringIo, Result};

/// A packet socket, wrapped in tokio's stream type, which only waits for readiness and leaves the
/// calls to us.
#[derive(Debug)]
pub(super) struct ControlSocket(UnixStream);

impl ControlSocket {
    pub(super) fn new(socket: OwnedFd) -> Result<Self> {
        rustix::io::ioctl_fionbio(&socket, true).during("make the control socket non-blocking")?;
        let socket = UnixStream::from_std(socket.into()).during("watch the control socket")?;
        Ok(Self(socket))
    }

    /// Receives a packet; `None` if the other side is gone.
    pub(super) async fn receive<M: DeserializeOwned>(&self) -> Result<Option<(M, Vec<OwnedFd>)>> {
        let Self(socket) = self;
        socket
            .async_io(Interest::READABLE, || {
                fds::receive(socket.as_fd()).map_err(io_error)
            })
            .await
            .during("receive from the launcher")
    }

    pub(super) async fn send(&self, message: &impl Serialize, descriptors: &[OwnedFd]) -> Result<()> {
        let Self(socket) = self;
        let borrowed: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
        socket
            .async_io(Interest::WRITABLE, || {
                fds::send(socket.as_fd(), message, &borrowed).map_err(io_error)
            })
            .await
            .during("send to the launcher")
    }
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
pub(super) struct Owner {
    control: ControlSocket,
    shared: Arc<LauncherState>,
    warm: watch::Sender<Option<WarmResult>>,
    waiting: HashMap<u64, oneshot::Sender<Reply>>,
    /// The packet to send next. Events are received meanwhile: a keep that cannot send its replies
    /// does not accept requests.
    outgoing: Option<OutgoingRequest>,
    next: u64,
}

#[derive(Debug)]
struct OutgoingRequest {
    request: LauncherRequest,
    descriptors: Vec<OwnedFd>,
    answer: Option<oneshot::Sender<Reply>>,
}

impl OutgoingRequest {
    async fn send(outgoing: Option<&Self>, control: &ControlSocket) -> Result<()> {
        match outgoing {
            Some(outgoing) => control.send(&outgoing.request, &outgoing.descriptors).await,
            None => std::future::pending().await,
        }
    }
}

impl Owner {
    pub(super) fn new(
        control: ControlSocket,
        shared: Arc<LauncherState>,
        warm: watch::Sender<Option<WarmResult>>,
    ) -> Self {
        Self {
            control,
            shared,
            warm,
            waiting: HashMap::new(),
            outgoing: None,
            next: 0,
        }
    }

    /// Serves until the launcher is gone or nobody can ask any more, and then until its process has `ended`.
    pub(super) async fn run(
        mut self,
        mut queue: mpsc::UnboundedReceiver<LauncherCall>,
        ended: impl Future<Output = ()>,
    ) {
        loop {
            tokio::select! {
                event = self.control.receive() => match event {
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
                sent = OutgoingRequest::send(self.outgoing.as_ref(), &self.control) => self.sent(sent),
            }
        }
        // From here on, all callers see that it has ended.
        drop(queue);
        let ends = std::mem::take(&mut *self.shared.lock());
        for end in ends.into_values() {
            end.send_replace(Some(ProcessEnd::Unknown));
        }
        // Closing the socket ends the keep and everything in it; waiting prevents a zombie.
        drop(self);
        ended.await;
    }

    fn take(&mut self, ask: LauncherCall) {
        self.next += 1;
        self.outgoing = Some(OutgoingRequest {
            request: LauncherRequest {
                id: self.next,
                operation: ask.operation,
            },
            descriptors: ask.descriptors,
            answer: ask.answer,
        });
    }

    fn sent(&mut self, result: Result<()>) {
        let Some(OutgoingRequest {
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
                end.send_replace(Some(ProcessEnd::from_status(status)));
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
            LauncherEvent::NotThawed { reason } => {
                tracing::warn!(reason, "cannot use the frozen template; it will be made again");
                self.shared.discard_frozen();
            }
            LauncherEvent::TemplateEnded => tracing::warn!("template ended"),
            LauncherEvent::Started { .. } | LauncherEvent::Refused { .. } => {
                tracing::warn!("unexpected packet from the launcher");
            }
        }
    }
}
