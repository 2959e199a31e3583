//! Tables in the answers of functions.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The table in an answer. Without it, code gets the JSON answer as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ConnectorResult")]
#[serde(default, deny_unknown_fields)]
pub struct ResultOptions {
    /// JSONPath of the rows, such as `$.observations[*]`.
    pub rows: String,
    /// Columns and their types, which make the answer a data frame. Without them, it is a list of
    /// the rows.
    pub columns: IndexMap<String, CellType>,
    /// JSONPaths of columns whose name is not the name of a row's field, such as `{city: $.place.name}`.
    pub paths: BTreeMap<String, String>,
    /// Texts that stand for a missing value, such as `.` or `n/a`.
    pub missing: Vec<String>,
}

/// Type of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CellType {
    /// Text.
    String,
    /// Integers.
    Int64,
    /// Floating-point numbers.
    Float64,
    /// Truth values.
    Bool,
    /// Dates as `2026-01-31`.
    Date,
    /// Times as RFC 3339, or without a time zone for UTC.
    Timestamp,
    /// Any value, as JSON text.
    Json,
}
