//! Connectors: functions of the host that code in a sandbox can call.
//!
//! ```text
//! code ──call──> grants ──bound arguments──> memo ──> connector ──> server, database, …
//!   ^               │ log                      └ equal call: the same answer
//!   └──fresh copy── redaction <──────────────────────────┘
//! ```
//!
//! A session has only the connectors that its [options](crate::session::SessionOptions) name.
//! Credentials stay on the host, and are removed by value from everything that comes back.

use std::fmt::Debug;
use std::time::Instant;

pub use cellblock_protocol::{Blob, Bundle, Card, FetchEffect};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

mod allowance;
mod answer;
mod approval;
mod arrow;
mod blob_writer;
mod catalog;
mod counted;
mod digest;
pub mod direct;
mod error;
mod fetch_answer;
mod granted;
mod grants;
mod large;
mod log;
mod memo;
mod name;
mod parameters;
mod records;
mod redaction;
mod row_stream;
mod sample;
mod schema;
mod store;
mod waits;

pub use allowance::FetchAllowance;
pub use approval::{IntendedWrite, MAX_WRITE_BYTES, MAX_WRITES, WriteApproval, with_approval};
pub(crate) use approval::{WriteMode, WriteRecorder};
pub use blob_writer::BlobWriter;
pub use catalog::{CATALOG_TOKENS, catalog};
pub use digest::fetch_log;
pub use error::{ConnectorError, ConnectorErrorKind};
pub use fetch_answer::{FetchAnswer, ListPlace, UnreadAnswer};
pub use grants::GrantTerms;
pub(crate) use grants::Grants;
pub use large::{FetchOptions, LARGE_ANSWER, LargeAnswer, limit_answers};
pub use log::FetchRecord;
pub(crate) use memo::Memo;
pub use memo::MemoPolicy;
pub use name::check_name;
pub use redaction::{MIN_SECRET_BYTES, Redaction};

/// A named set of functions that code can call.
pub trait Connector: Send + Sync + Debug {
    /// Returns the name that it has in code; see [`check_name`].
    fn name(&self) -> &str;

    /// Returns a description for a model.
    fn description(&self) -> &str;

    /// Returns its functions. [`Card::function`] is chosen by the session.
    fn cards(&self) -> BoxFuture<'_, Result<Vec<Card>, ConnectorError>>;

    /// Calls the function with this [`Card::name`]. The arguments match its schema, as far as that
    /// can be checked. Dropping the future cancels the call, which happens at `until` at the
    /// latest. The connector limits the time and the size of an answer.
    fn fetch(
        &self,
        function: &str,
        arguments: Map<String, Value>,
        until: Instant,
    ) -> BoxFuture<'_, Result<FetchAnswer, ConnectorError>>;

    /// Checks that the far side can be reached, without calling a function. By default, asks for
    /// the functions.
    fn check(&self) -> BoxFuture<'_, Result<(), ConnectorError>> {
        Box::pin(async { self.cards().await.map(drop) })
    }

    /// Returns what removes its secrets.
    fn redaction(&self) -> &Redaction;

    /// Returns which later calls get the answer of an equal earlier one.
    fn memo(&self) -> MemoPolicy {
        MemoPolicy::default()
    }

    /// Returns whether the session's client answers its calls. The time that a cell waits for its
    /// client does not count toward the cell's timeout, so such a call may last beyond `until`.
    fn waits_for_client(&self) -> bool {
        false
    }

    /// Returns whether calls of this function, which changes something, need a person's approval.
    fn needs_approval(&self, _card: &Card) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
