//! Requests that a kernel answers one after the other, in the order in which they came.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::execute::{CodeEnd, execute};
use super::kernel::Activity;
use super::questions;
use super::state::HeldKernel;
use super::wire::Message;
use crate::host::DialectHost;

/// Maximum number of requests of a kernel that wait.
const WAITING: usize = 256;
/// Maximum size of all of them in bytes. One that is larger waits alone.
const WAITING_BYTES: u32 = 32 << 20;

/// The end of a queue to which requests go. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    jobs: mpsc::Sender<Job>,
    room: Arc<Semaphore>,
}

/// A request, and who waits for its reply. It keeps the kernel from expiring.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) held: HeldKernel,
    pub(super) request: Message,
    pub(super) client: mpsc::Sender<Arc<Message>>,
    /// The kernel's number of restarts when the request came.
    pub(super) life: u64,
    /// Its part of the size of all that wait.
    pub(super) room: Option<OwnedSemaphorePermit>,
}

/// The other end of a queue.
#[derive(Debug)]
pub(super) struct Jobs(mpsc::Receiver<Job>);

/// Returns both ends of a queue.
pub(super) fn channel() -> (Queue, Jobs) {
    let (sender, receiver) = mpsc::channel(WAITING);
    let queue = Queue {
        jobs: sender,
        room: Arc::new(Semaphore::new(WAITING_BYTES as usize)),
    };
    (queue, Jobs(receiver))
}

impl Queue {
    /// Lets a request of this many bytes wait, or returns it if too much waits.
    pub(super) fn offer(&self, mut job: Job, bytes: usize) -> Result<(), Box<Job>> {
        let bytes = u32::try_from(bytes).unwrap_or(WAITING_BYTES).min(WAITING_BYTES);
        let Ok(room) = Arc::clone(&self.room).try_acquire_many_owned(bytes) else {
            return Err(Box::new(job));
        };
        job.room = Some(room);
        self.jobs
            .try_send(job)
            .map_err(|refused| Box::new(refused.into_inner()))
    }
}

impl Jobs {
    /// Answers requests until the kernel is gone.
    pub(super) async fn serve(mut self, host: DialectHost) {
        while let Some(job) = self.0.recv().await {
            if job.life != job.held.kept.life() {
                job.abort().await;
            } else if job.serve(&host).await == CodeEnd::StopOthers {
                self.abort().await;
            }
        }
    }

    /// Answers the code that waits as not run, because what came before it failed.
    async fn abort(&mut self) {
        let mut waiting = Vec::new();
        while let Ok(job) = self.0.try_recv() {
            waiting.push(job);
        }
        for job in waiting {
            job.abort().await;
        }
    }
}

impl Job {
    /// Answers that it is not done.
    async fn abort(&self) {
        let kernel = &self.held.kept;
        kernel.status(Activity::Busy, &self.request.header).await;
        let content = json!({"status": "aborted", "execution_count": kernel.count()});
        kernel.reply(&self.client, &self.request, content).await;
        kernel.status(Activity::Idle, &self.request.header).await;
    }

    async fn serve(&self, host: &DialectHost) -> CodeEnd {
        let kernel = &self.held.kept;
        kernel.status(Activity::Busy, &self.request.header).await;
        let ended = if self.request.kind() == "execute_request" {
            execute(host, self).await
        } else {
            let content = questions::answer(host, &self.held, &self.request).await;
            kernel.reply(&self.client, &self.request, content).await;
            CodeEnd::Fine
        };
        kernel.status(Activity::Idle, &self.request.header).await;
        ended
    }
}
