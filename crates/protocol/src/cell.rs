//! A cell that has ended, as the kernel describes it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Outcome of a request, from the kernel's view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KernelOutcome {
    /// It completed.
    Completed,
    /// It raised an exception.
    Raised,
    /// SIGINT interrupted it.
    Interrupted,
    /// The guard rejected it before it started.
    Rejected,
}

/// Names of a user's variables, by what a cell did to them; at most 2,000 of each kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CellNames {
    /// Names that are bound to an object, perhaps the same as before.
    #[serde(default)]
    pub assigned: Vec<String>,
    /// The names among `assigned` that did not exist before.
    #[serde(default)]
    pub created: Vec<String>,
    /// Names that no longer exist.
    #[serde(default)]
    pub deleted: Vec<String>,
    /// Names whose object was changed in place.
    #[serde(default)]
    pub changed: Vec<String>,
    /// Names that the code, or a function that it names, reads.
    #[serde(default)]
    pub read: Vec<String>,
}

/// Summary of an exception that a cell raised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CellError {
    /// Name of the exception's type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its message.
    #[serde(default)]
    pub message: String,
    /// Error number of an `OSError`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errno: Option<i32>,
    /// Line in the user's code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Status of a `SystemExit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}

/// A variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Name of its Python type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Short description of its value.
    #[serde(default)]
    pub summary: String,
}

/// A rule of the guard that code violated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rejection {
    /// Name of the rule.
    pub rule: String,
    /// Line of the violation.
    #[serde(default)]
    pub line: Option<u32>,
    /// Suggested fix.
    #[serde(default)]
    pub message: String,
}

/// A fact about the data that readers must know: merged duplicates, or entities that entered or
/// left.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Kind of the finding, such as `duplicate_buckets`.
    pub code: String,
    /// The finding and its meaning.
    pub message: String,
    /// The affected series, column or source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<String>,
    /// Additional numbers and names: an object.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub details: Value,
}
