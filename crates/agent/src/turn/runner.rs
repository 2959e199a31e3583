//! Running the code of a turn.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::call_result::CallResult;
use super::toolset::ToolsetCall;
use crate::wire::Item;

/// The environment in which the code of one turn runs.
pub trait Runner: Send + Sync {
    /// Returns paths of the initial files, which the model is shown.
    fn files(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns a note for the model if variables and files are not kept between calls; `None` if
    /// they are.
    fn about(&self) -> Option<&str> {
        None
    }

    /// Returns a note for the model about the hosts that code reaches; `None` if it has no network.
    fn network(&self) -> Option<&str> {
        None
    }

    /// Returns a note for the model if code of earlier turns ran in a sandbox that has ended.
    fn lost(&self) -> Option<String> {
        None
    }

    /// Returns the text that announces the skills of its sandbox to the model; `None` if it has none.
    fn skills(&self) -> Option<String> {
        None
    }

    /// Returns whether code can derive from fetched data.
    fn derives(&self) -> bool {
        false
    }

    /// Returns items in the form for the model: files and pictures of users become texts and
    /// `data:` URLs.
    fn read(&self, items: Vec<Item>) -> BoxFuture<'_, Vec<Item>> {
        Box::pin(async { items })
    }

    /// Returns the place of a step's next call; `before` calls of the step exist already. The place
    /// is known before the call's code is; a sandbox may be created when the code runs.
    fn place(&self, before: usize) -> BoxFuture<'_, Arc<dyn CallSandbox>>;
}

/// The place where a call runs.
pub trait CallSandbox: Send + Sync {
    /// Returns the container's id. Calls of one container run one after the other.
    fn container(&self) -> &str;

    /// Waits until code can run there, or returns why it cannot. Dropping the future leaves the
    /// queue.
    fn ready(&self) -> BoxFuture<'_, Result<(), CallResult>> {
        Box::pin(async { Ok(()) })
    }

    /// Runs a call, of code or of another tool, to its end. Its failures, and unavailable
    /// sandboxes, are reported in the result. Dropping the future stops it.
    fn run(&self, call: ToolsetCall) -> BoxFuture<'_, CallResult>;
}
