//! What a host serves: tools, whatever they are.

use std::future::Future;
use std::path::PathBuf;

use serde_json::Value;
use tokio::sync::broadcast;

use super::plan::Dataset;
use super::wire::Added;
use crate::error::Result;

/// Tools over one sandbox.
pub(crate) trait Toolbox: Send + Sync + 'static {
    /// Calls a tool. What it refuses is among its results.
    fn call(&self, tool: &str, arguments: Value) -> impl Future<Output = Result<Value>> + Send;

    /// Stops what runs in the sandbox.
    fn interrupt(&self);

    /// What happens from here on.
    fn happenings(&self) -> broadcast::Receiver<Happening>;

    /// Shows a file of the host in the sandbox.
    fn add_dataset(&self, dataset: &Dataset) -> impl Future<Output = Result<Added>> + Send;

    /// The section of a system prompt that tells a model of the tools and the data.
    fn prompt(&self) -> String;

    /// Gives everything back; no call can be made any more.
    fn close(&self) -> impl Future<Output = Result<()>> + Send;
}

/// Something that happens while tools work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Happening {
    /// A command wrote this to stdout.
    Stdout(Vec<u8>),
    /// Likewise to stderr.
    Stderr(Vec<u8>),
    /// A picture was saved.
    Visualization { path: PathBuf, media_type: String },
}
