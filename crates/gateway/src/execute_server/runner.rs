//! A server that keeps nothing as a turn's runner.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cellblock_agent::turn::{CallResult, CallSandbox, OutputFile, Runner, ToolsetCall};
use cellblock_agent::wire::Ids;
use futures_util::future::BoxFuture;

use super::answer::CodeFile;
use super::client::{Execute, ExecuteServer};
use super::show::{NOTHING_KEPT, show};

/// Stores files that code made, so that readers of an answer can download them.
pub trait FileStorage: Send + Sync {
    /// Keeps a file as one of a container; `None` where it could not be kept, which is in the log.
    fn keep<'a>(&'a self, container: &'a str, file: CodeFile) -> BoxFuture<'a, Option<OutputFile>>;
}

/// Runs each call of a turn by itself.
#[derive(Clone)]
pub struct ExecuteRunner {
    server: ExecuteServer,
    timeout: Duration,
    keep: Option<Arc<dyn FileStorage>>,
    files: BTreeMap<String, Vec<u8>>,
}

impl std::fmt::Debug for ExecuteRunner {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ExecuteRunner")
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl ExecuteRunner {
    /// Runs code at a server, each call for at most `timeout`.
    pub const fn new(server: ExecuteServer, timeout: Duration) -> Self {
        Self {
            server,
            timeout,
            keep: None,
            files: BTreeMap::new(),
        }
    }

    /// Sends these with each call, by their names.
    #[must_use]
    pub fn sending(mut self, files: BTreeMap<String, Vec<u8>>) -> Self {
        self.files = files;
        self
    }

    /// Keeps the files that calls make; without this they are named and no more.
    #[must_use]
    pub fn keeping(mut self, keep: Arc<dyn FileStorage>) -> Self {
        self.keep = Some(keep);
        self
    }
}

impl Runner for ExecuteRunner {
    fn about(&self) -> Option<&str> {
        Some(NOTHING_KEPT)
    }

    fn place(&self, _: usize) -> BoxFuture<'_, Arc<dyn CallSandbox>> {
        let call = RunnerCall {
            runner: self.clone(),
            container: Ids::random().mint("cntr"),
        };
        Box::pin(async move { Arc::new(call) as Arc<dyn CallSandbox> })
    }
}

/// One call. Its container's id names no place: nothing but files that were kept is in it.
struct RunnerCall {
    runner: ExecuteRunner,
    container: String,
}

impl CallSandbox for RunnerCall {
    fn container(&self) -> &str {
        &self.container
    }

    /// Dropping it closes the connection; the server notices that nobody listens, or that the
    /// code's time is over.
    fn run(&self, call: ToolsetCall) -> BoxFuture<'_, CallResult> {
        Box::pin(async move {
            let execute = Execute {
                code: call.code().to_owned(),
                requirements: call.requirements(),
                timeout: self.runner.timeout,
                files: self.runner.files.clone(),
            };
            let executed = match self.runner.server.run(&execute).await {
                Ok(executed) => executed,
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "run code of a model");
                    return CallResult::refused(error.told());
                }
            };
            let shown = show(&executed, self.runner.timeout.as_secs_f64());
            let mut made = Vec::new();
            if let Some(keep) = &self.runner.keep {
                for file in executed.files {
                    made.extend(keep.keep(&self.container, file).await);
                }
            }
            CallResult {
                derivation: None,
                asks: None,
                report: shown.report,
                status: shown.status,
                outputs: shown.outputs,
                result: shown.result,
                made,
            }
        })
    }
}
