//! Requests that a kernel answers one after the other, in the order in which they came.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::mpsc;

use super::execute::{Ended, execute};
use super::kernel::Activity;
use super::questions;
use super::state::HeldKernel;
use super::wire::Message;
use crate::host::DialectHost;

/// Requests of a kernel that may wait.
const WAITING: usize = 256;

/// The end of a queue to which requests go.
pub(super) type Queue = mpsc::Sender<Job>;

/// A request, and who waits for its reply. It keeps the kernel from expiring.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) held: HeldKernel,
    pub(super) request: Message,
    pub(super) client: mpsc::Sender<Arc<Message>>,
    /// The kernel's number of restarts when the request came.
    pub(super) life: u64,
}

/// The other end of a queue.
#[derive(Debug)]
pub(super) struct Jobs(mpsc::Receiver<Job>);

/// Returns both ends of a queue.
pub(super) fn channel() -> (Queue, Jobs) {
    let (queue, jobs) = mpsc::channel(WAITING);
    (queue, Jobs(jobs))
}

impl Jobs {
    /// Answers requests until the kernel is gone.
    pub(super) async fn serve(mut self, host: DialectHost) {
        while let Some(job) = self.0.recv().await {
            if job.life != job.held.kept.life() {
                job.abort().await;
            } else if job.serve(&host).await == Ended::StopOthers {
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

    async fn serve(&self, host: &DialectHost) -> Ended {
        let kernel = &self.held.kept;
        kernel.status(Activity::Busy, &self.request.header).await;
        let ended = if self.request.kind() == "execute_request" {
            execute(host, self).await
        } else {
            let content = questions::answer(host, &self.held, &self.request).await;
            kernel.reply(&self.client, &self.request, content).await;
            Ended::Fine
        };
        kernel.status(Activity::Idle, &self.request.header).await;
        ended
    }
}
