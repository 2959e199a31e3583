//! Limits on what code may fetch.

use std::fmt::Debug;

use futures_util::future::BoxFuture;

use super::ConnectorError;

/// Allowance for the fetches of a session's owner. It counts requests that are made: an answer of an earlier
/// equal call costs nothing, nor does a call that the session's client answers.
pub trait FetchAllowance: Send + Sync + Debug {
    /// Returns the owner's name in the log.
    fn owner(&self) -> &str;

    /// Counts a request that is about to be made. An error, which code sees as that of its call,
    /// prevents the request.
    fn begin(&self) -> BoxFuture<'_, Result<(), ConnectorError>>;

    /// Counts the bytes of an answer.
    fn fetched(&self, bytes: u64);

    /// Counts a layer of required packages that is about to be installed, unless it exists already.
    /// An error, which says which limit it is and when to try again, prevents it.
    fn install(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }
}
