//! A call from code in a sandbox to its host.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use cellblock_protocol::{Blob, CallError};
use cellblock_sandbox::backend::BoxFuture;
use serde_json::Value;

/// Maximum number of characters of a name that code made up, in an error.
const NAME_CHARS: usize = 64;

/// Returns a name that code made up, for an error.
pub(crate) fn shown(name: &str) -> String {
    let name: String = name.chars().take(NAME_CHARS).collect();
    name.escape_debug().to_string()
}

/// One call.
#[derive(Debug)]
pub(crate) struct HostCall {
    pub(crate) method: String,
    pub(crate) params: Value,
    pub(crate) blobs: Vec<Blob>,
    /// Time at which the cell that makes the call is stopped.
    pub(crate) until: Instant,
}

/// The answer to a call.
#[derive(Debug, Default)]
pub(crate) struct HostReply {
    pub(crate) value: Value,
    pub(crate) blobs: Vec<Blob>,
}

/// Methods that the host offers to the code of a session.
pub(crate) trait HostMethods: Send + Sync + Debug {
    /// Starts a call. Dropping the future cancels it.
    fn call(&self, call: HostCall) -> BoxFuture<'static, Result<HostReply, CallError>>;

    /// Returns how long calls have waited for the session's client so far. That time is not the cell's own.
    fn waited(&self) -> Duration {
        Duration::ZERO
    }
}
