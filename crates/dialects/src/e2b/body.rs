//! Bodies and queries of requests: what is not known is refused by its name, so that nothing is
//! promised that is not done.

use bytes::Bytes;
use cellblock_interpreter::json_error;
use serde::de::DeserializeOwned;

use super::error::{Answer, Problem};

/// Reads a body of JSON; one without bytes is that without fields.
pub(super) fn read<T: DeserializeOwned>(body: &Bytes) -> Answer<T> {
    let json: &[u8] = if body.is_empty() { b"{}" } else { body };
    serde_json::from_slice(json)
        .map_err(|error| Problem::invalid(format!("invalid body: {}", json_error::describe(&error))))
}

/// Refuses a parameter of a query that a route does not have.
pub(super) fn unknown_parameter(name: &str, known: &[&str]) -> Problem {
    let known = known.join("`, `");
    Problem::invalid(format!(
        "unknown parameter `{name}`; leave it out, the parameters of this route are `{known}`"
    ))
}
