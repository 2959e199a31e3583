//! Messages between the host and a kernel.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Message, Output};

/// What the host asks of a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToKernel {
    /// Sets up the namespace; a later one adds to `sys_path`.
    Configure {
        /// Names of sets of names that are bound before the first cell.
        #[serde(default)]
        prelude: Vec<String>,
        /// How strictly code is checked before it runs.
        guard: Guard,
        /// How much a cell may show.
        limits: OutputLimits,
        /// Directories of requirement layers.
        #[serde(default)]
        sys_path: Vec<String>,
        /// When a standby is made that keeps the state from before a cell.
        #[serde(default)]
        rescue: Rescue,
    },
    /// Runs code.
    Execute {
        /// The cell's number, repeated in each answer.
        cell: u64,
        /// The code.
        code: String,
        /// The file name that tracebacks show.
        name: String,
        /// The number of the first line of `code` in that file.
        #[serde(default = "first_line")]
        line: u32,
        /// Whether the code is statements or one expression.
        mode: CellMode,
        /// Whether a trailing expression is displayed.
        echo: bool,
        /// Whether names that the code binds are kept.
        store: bool,
        /// Whether nothing runs after it, so that handlers of `atexit` run at its end.
        #[serde(default, skip_serializing_if = "is_false")]
        last: bool,
        /// Earlier tool results that the code finds bound, as globals and in `inputs`; read afresh for each cell that uses them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        references: Vec<Reference>,
    },
    /// Asks for a variable as an output.
    Get {
        /// The cell's number.
        cell: u64,
        /// The variable.
        name: String,
    },
    /// Binds an input to a name: from a path, or from one blob.
    Bind {
        /// The cell's number.
        cell: u64,
        /// The name to bind.
        name: String,
        /// How to read the bytes.
        format: InputFormat,
        /// Where they are in the sandbox; absent when they are in blob 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
    },
    /// Asks for the variables.
    Variables {
        /// The cell's number.
        cell: u64,
    },
    /// Empties the namespace.
    Reset {
        /// The cell's number.
        cell: u64,
    },
    /// Answers a call.
    Answer {
        /// The call's number.
        call: u64,
        /// The result; null beside an `error`.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        value: Value,
        /// Why there is no result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<CallError>,
    },
    /// Makes a standby the kernel: sent on the spare channel, with the spare channel of the next standby beside it.
    TakeOver {},
}

impl Message for ToKernel {
    const TYPES: &'static [&'static str] = &[
        "configure",
        "execute",
        "get",
        "bind",
        "variables",
        "reset",
        "answer",
        "take_over",
    ];
}

fn first_line() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

/// When a standby is made that keeps the state from before a cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rescue {
    /// Never.
    #[default]
    Off,
    /// When the kernel has been idle for a moment.
    Idle,
    /// After every change of the state, before the next message is looked at.
    On,
}

/// How strictly code is checked before it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Guard {
    /// Not at all.
    Off,
    /// The rules.
    Standard,
    /// The rules, and fewer builtins.
    Strict,
}

/// Whether code is statements or an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CellMode {
    /// Statements.
    Exec,
    /// One expression.
    Eval,
}

/// A name, and the part of a file of the sandbox that holds its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reference {
    /// The name to bind.
    pub name: String,
    /// The tool result's alias. Names of one alias are bound to one object.
    pub alias: String,
    /// How to read the bytes.
    pub format: InputFormat,
    /// The file.
    pub path: String,
    /// Where the value begins in it.
    #[serde(default)]
    pub offset: u64,
    /// How many bytes the value has.
    pub length: u64,
}

/// How much a cell may show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutputLimits {
    /// The most outputs of a cell.
    pub outputs: u32,
    /// The most bytes of one output's blobs.
    pub output_bytes: u64,
    /// The most characters of one text.
    pub text_chars: u64,
    /// The rows of the head, and of the tail, of a table whose bytes exceed the limit.
    pub rows_preview: u32,
    /// The most bytes of a result as JSON.
    #[serde(default = "result_bytes")]
    pub result_bytes: u64,
}

fn result_bytes() -> u64 {
    4 * 1024 * 1024
}

/// How the bytes of an input are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InputFormat {
    /// Comma separated values.
    Csv,
    /// Tab separated values.
    Tsv,
    /// Parquet.
    Parquet,
    /// A JSON table.
    Json,
    /// One JSON object per line.
    Ndjson,
    /// Arrow IPC, file or stream.
    Arrow,
    /// An Excel workbook.
    Xlsx,
    /// Bytes, bound as they are.
    Bytes,
    /// A JSON document, bound as the Python object.
    Value,
}

/// What a kernel tells the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromKernel {
    /// The kernel is there.
    Hello {
        /// Its generation of the protocol.
        generation: u32,
        /// Its process in the sandbox.
        pid: u32,
        /// Python's version.
        python: String,
    },
    /// A cell showed a value.
    Output {
        /// The cell.
        cell: u64,
        /// The output's number within the cell, from 0.
        index: u32,
        /// The value.
        output: Output,
    },
    /// A request has ended.
    Done {
        /// The cell.
        cell: u64,
        /// How it ended.
        outcome: KernelOutcome,
        /// How long it took, in microseconds.
        #[serde(default)]
        duration_us: u64,
        /// What was raised.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<CellError>,
        /// The variables, when asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        variables: Option<Vec<Variable>>,
        /// How many outputs were beyond the limit.
        #[serde(default)]
        outputs_dropped: u32,
        /// What the guard refused.
        #[serde(default)]
        rejections: Vec<Rejection>,
        /// Whether the directories that are collected are empty, so that nobody need look into them. Who says so wrongly keeps its own
        /// files back.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        no_files: bool,
        /// What the code's helpers noticed about its data, at most 100.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        findings: Vec<Finding>,
    },
    /// Code in the sandbox asks the host.
    Call {
        /// The call's number, to be repeated in the answer.
        call: u64,
        /// What is asked for.
        method: String,
        /// With which parameters.
        #[serde(default)]
        params: Value,
    },
    /// A standby holds the present state, or cannot be made.
    Standby {
        /// How many messages had changed the state: `configure`, `execute`, `bind` and `reset`.
        changes: u64,
        /// The standby's process in the sandbox.
        #[serde(default)]
        pid: Option<u32>,
        /// Why there is none: what stands in the way.
        #[serde(default)]
        refused: Option<String>,
    },
}

impl Message for FromKernel {
    const TYPES: &'static [&'static str] = &["hello", "output", "done", "call", "standby"];
}

/// How a request ended, as the kernel saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KernelOutcome {
    /// To its end.
    Completed,
    /// By an exception.
    Raised,
    /// By SIGINT.
    Interrupted,
    /// Before it began, by the guard.
    Rejected,
}

/// What a cell raised, in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CellError {
    /// The name of the exception's type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its message.
    #[serde(default)]
    pub message: String,
    /// The error number of an `OSError`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errno: Option<i32>,
    /// The line in the user's code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The status of a `SystemExit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}

/// A variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// The name of its Python type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its value in a few words.
    #[serde(default)]
    pub summary: String,
}

/// One rule of the guard that code broke.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rejection {
    /// The rule.
    pub rule: String,
    /// Where.
    #[serde(default)]
    pub line: Option<u32>,
    /// What to do instead.
    #[serde(default)]
    pub message: String,
}

/// Something about the data that a reader has to know: duplicates that were merged, entities that came and went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// What kind it is, such as `duplicate_buckets`.
    pub code: String,
    /// What was found, and what it means.
    pub message: String,
    /// The series, column or source that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<String>,
    /// Figures and names to go with it: an object.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub details: Value,
}

/// Why a call has no result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallError {
    /// What kind of failure.
    pub code: String,
    /// What happened and how to repair it.
    pub message: String,
}
