//! Findings about a cell's data: nothing that fails it, but something that a reader has to know.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::output::DecodingLimits;
use crate::output::text::name;

/// Findings of one cell that are kept.
const MOST: usize = 100;
/// Bytes of a finding's details as JSON.
const DETAILS: usize = 16 * 1024;

/// A finding about the data, such as a line that covers little of its axis.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Finding {
    /// Kind of the finding, such as `low_coverage`.
    pub code: String,
    /// Description of the finding.
    pub message: String,
    /// The series, column or source concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<String>,
    /// Numbers and names that belong to the finding.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub details: Value,
}

/// Takes over what a kernel reports, which may be anything.
pub(crate) fn from_kernel(found: Vec<cellblock_protocol::Finding>) -> Vec<Finding> {
    let limits = DecodingLimits::default();
    found
        .into_iter()
        .take(MOST)
        .map(|found| Finding {
            code: name(found.code, limits.name_chars),
            message: name(found.message, limits.text_chars.min(2000)),
            series: found.series.map(|series| name(series, limits.name_chars)),
            details: match found.details.to_string().len() {
                ..=DETAILS => found.details,
                _ => Value::Null,
            },
        })
        .collect()
}
