//! Compaction of a conversation, as a request wants it.

use super::fields::{Fields, RequestFields as _};
use crate::wire::error::ApiError;

/// Smallest number of tokens that a request may set.
const LEAST: u64 = 1_000;
/// Number of tokens if the request sets none: most models can read more.
const USUAL: u64 = 100_000;

/// Compaction of a request's conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompactionRequest {
    /// Whether the conversation is compacted at once, and no model answers it.
    pub now: bool,
    /// Number of tokens from which the conversation is compacted before the model continues.
    pub threshold: Option<u64>,
}

/// Parses `context_management`: the number of tokens from which a conversation is compacted.
pub(super) fn threshold(fields: &Fields<'_>) -> Result<Option<u64>, ApiError> {
    if fields.list("context_management")?.len() > 1 {
        let reason = "has more than one entry; send one of the type `compaction`";
        return Err(fields.invalid("context_management", "array_above_max_length", reason));
    }
    let thresholds = fields.each("context_management", |entry| {
        match entry.required("type")?.as_str() {
            "compaction" => Ok(entry.count("compact_threshold", LEAST)?.unwrap_or(USUAL)),
            other => Err(entry.unknown("type", other, "`compaction`")),
        }
    })?;
    Ok(thresholds.first().copied())
}
