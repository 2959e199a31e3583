//! Calls that go on as tasks: the client asks for what became of them.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, Task};
use rmcp::task_manager::{TaskExit, TaskManager, TaskOptions};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use cellblock_interpreter::hosting::Owner;

/// Maximum time of a task, and the time for which its answer is kept afterwards, if cells do not run longer.
const KEPT: Duration = Duration::from_mins(15);
/// Interval at which clients are advised to poll.
const POLL: Duration = Duration::from_secs(1);

/// A call at work, away from the request that began it.
#[derive(Debug)]
pub(crate) struct TaskCall {
    pub(crate) answer: JoinHandle<CallToolResult>,
    pub(crate) stop: CancellationToken,
    /// Stops the call when nobody waits for it any more.
    pub(crate) guard: DropGuard,
}

/// The tasks of each owner, who sees no others.
pub(crate) struct Tasks {
    all: Mutex<HashMap<Owner, TaskManager>>,
    /// Longer than any cell with those that it waits for.
    kept: Duration,
}

impl Tasks {
    /// None yet, of calls whose code runs no longer than this.
    pub(crate) fn new(longest: Duration) -> Self {
        Self {
            all: Mutex::default(),
            kept: KEPT.max(longest * 3),
        }
    }

    /// An owner's.
    pub(crate) fn of(&self, owner: &Owner) -> TaskManager {
        let mut all = self.all.lock();
        all.entry(owner.clone()).or_default().clone()
    }

    /// Goes on with a call as a task.
    pub(crate) fn begin(&self, owner: &Owner, working: TaskCall) -> Task {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let options = TaskOptions::new()
            .with_ttl_ms(millis(self.kept))
            .with_poll_interval_ms(millis(POLL))
            .with_status_message("the code is running");
        self.of(owner).spawn(options, |task| {
            Box::pin(async move {
                let TaskCall {
                    mut answer,
                    stop,
                    guard,
                } = working;
                let ended = tokio::select! {
                    ended = &mut answer => ended,
                    () = task.cancelled() => {
                        stop.cancel();
                        // The sandbox is free for other calls once this one has ended.
                        let _ = answer.await;
                        return Err(TaskExit::Cancelled);
                    }
                };
                guard.disarm();
                ended.map_err(|error| {
                    tracing::error!(%error, "a call did not come to its end");
                    TaskExit::Error(ErrorData::internal_error("the call failed", None))
                })
            })
        })
    }

    /// Ends all.
    pub(crate) fn shutdown(&self) {
        for tasks in self.all.lock().values() {
            tasks.shutdown();
        }
    }
}

impl std::fmt::Debug for Tasks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tasks").finish_non_exhaustive()
    }
}
