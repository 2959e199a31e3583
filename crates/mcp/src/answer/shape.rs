//! An execution as data: the structured content of tools that run cells.

use std::collections::BTreeMap;

use cellblock_interpreter::execution::{Finding, LimitExcess, Rejection, SkippedFile, VariablesState};
use cellblock_interpreter::lineage::VariableOrigin;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// Result of a cell.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Ran")]
pub(crate) struct RanCell {
    /// The session's handle: pass it as `session_id` to go on with these variables and files.
    pub(crate) session_id: String,
    /// The cell's number in its session, from 1.
    pub(crate) cell: u64,
    /// Outcome of the cell. Only `completed` means that all of the code ran.
    #[schemars(extend("enum" = ["completed", "raised", "interrupted", "kernel_lost", "limit_exceeded",
        "rejected"]))]
    pub(crate) outcome: String,
    /// State of the session's variables.
    pub(crate) variables: VariablesState,
    /// Duration in milliseconds.
    pub(crate) duration_ms: f64,
    /// Text that was written to stdout; of a long text the middle is left out.
    pub(crate) stdout: String,
    /// Text that was written to stderr.
    pub(crate) stderr: String,
    /// Outputs that it showed, in order.
    pub(crate) outputs: Vec<ShownValue>,
    /// Outputs that were made and are not among `outputs`.
    pub(crate) outputs_left_out: u64,
    /// New and changed files.
    pub(crate) files: Vec<Link>,
    /// Files that were made and are not among `files`.
    pub(crate) files_left_out: u64,
    /// Files that could not be collected, with reasons.
    pub(crate) skipped_files: Vec<SkippedFile>,
    /// Findings about its data.
    pub(crate) findings: Vec<Finding>,
    /// Fetches from connectors: each call with its outcome, number of rows, columns, first and last rows, and
    /// the artifact with the table as Parquet.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) fetch_log: String,
    /// Reason that it is not completed.
    pub(crate) error: Option<CellFailure>,
    /// Origins of the variables that it bound or changed, by name, if it has a producer and completed.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) origins: BTreeMap<String, VariableOrigin>,
    /// Additional note: lost variables, limits, and how to continue.
    pub(crate) note: Option<String>,
}

/// One value that a cell showed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Shown")]
pub(crate) struct ShownValue {
    /// `dataframe`, `figure`, `image`, `primitive`, `rich`, `chart`, `result` or `exception`.
    pub(crate) kind: String,
    /// The variable's or figure's name.
    pub(crate) name: Option<String>,
    /// It as text, within a budget.
    pub(crate) text: String,
    /// Number of rows.
    pub(crate) rows: Option<u64>,
    /// The columns of a table.
    pub(crate) columns: Vec<TableColumn>,
    /// A scalar, or what the cell answered with `set_result`; left out where it is large.
    pub(crate) value: Value,
    /// All of it, to be read as resources: a table as Parquet, a chart as PNG and as its specification.
    pub(crate) resources: Vec<Link>,
}

/// A column of a table.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Column")]
pub(crate) struct TableColumn {
    /// Its name.
    pub(crate) name: String,
    /// Its type as its library prints it.
    pub(crate) dtype: String,
}

/// Something that can be read as a resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Link {
    /// Its URI, for `resources/read`.
    pub(crate) uri: String,
    /// Its name; of a file its path below `/workspace` or `/tmp/output`.
    pub(crate) name: String,
    /// Its media type.
    pub(crate) media_type: String,
    /// Its size in bytes.
    pub(crate) bytes: Option<u64>,
}

/// Reason that a cell did not complete, and what to do.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Failure")]
pub(crate) struct CellFailure {
    /// The exception's type, where one was raised.
    pub(crate) exception: Option<String>,
    /// Description of the problem.
    pub(crate) message: String,
    /// The line of the code, from 1.
    pub(crate) line: Option<u32>,
    /// Hint for the next attempt.
    pub(crate) hint: String,
    /// Reasons that it was refused, one by one.
    pub(crate) rejections: Vec<Rejection>,
    /// The limit that it ran into.
    pub(crate) limit: Option<LimitExcess>,
}
