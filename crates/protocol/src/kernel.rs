//! Messages between the host and a kernel.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    CellError, CellNames, Finding, KernelOutcome, MessageSet, Obstacle, Output, Rejection, Variable,
};

/// A message from the host to a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToKernel {
    /// Lets the kernel of a machine that was just restored prepare for its first cell.
    Restored {},
    /// Configures the namespace; later ones add to `sys_path`.
    Configure {
        /// Preludes: sets of names that are bound before the first cell.
        #[serde(default)]
        prelude: Vec<String>,
        /// Strictness of the checks before code runs.
        guard: Guard,
        /// Limits of a cell's outputs.
        limits: OutputLimits,
        /// Directories of requirement layers.
        #[serde(default)]
        sys_path: Vec<String>,
        /// Condition for making a standby that keeps the state from before a cell.
        #[serde(default)]
        rescue: Rescue,
        /// Connectors that the code may call. Those of the first message count.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        connectors: Vec<Bundle>,
        /// Converters of outputs, as `module:function`, by the class whose values they convert.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        outputs: BTreeMap<String, String>,
    },
    /// Runs code that prepares the session. What it binds belongs to the base namespace, until the
    /// next `reset`.
    Setup {
        /// Number of the request.
        cell: u64,
        /// File name in tracebacks.
        name: String,
        /// The code.
        code: String,
        /// Whether the guard checks it.
        guarded: bool,
    },
    /// Checks code as `execute` would, without running it.
    Check {
        /// Number of the request.
        cell: u64,
        /// The code.
        code: String,
        /// File name in tracebacks.
        name: String,
        /// Line number of the first line of `code` in that file.
        #[serde(default = "first_line")]
        line: u32,
        /// Whether the code consists of statements or is one expression.
        mode: CellMode,
    },
    /// Runs code.
    Execute {
        /// Number of the cell, repeated in each response.
        cell: u64,
        /// The code.
        code: String,
        /// File name in tracebacks.
        name: String,
        /// Line number of the first line of `code` in that file.
        #[serde(default = "first_line")]
        line: u32,
        /// Language of the code; absent for Python.
        #[serde(default, skip_serializing_if = "Language::is_python")]
        language: Language,
        /// Arguments of the code as a script, beginning with its name; absent for the name alone.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        argv: Vec<String>,
        /// Whether the code consists of statements or is one expression.
        mode: CellMode,
        /// Whether a trailing expression is displayed.
        echo: bool,
        /// Whether names bound by the code are kept.
        store: bool,
        /// Whether this is the last cell, after which handlers of `atexit` run.
        #[serde(default, skip_serializing_if = "is_false")]
        last: bool,
        /// Earlier tool results, bound as globals and in `inputs`; read again for each cell that
        /// uses them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        references: Vec<Reference>,
        /// Whether `done` reports the names that the code binds, changes and reads.
        #[serde(default, skip_serializing_if = "is_false")]
        report_names: bool,
        /// Milliseconds that the host waits after an interrupt before it ends the kernel, for a
        /// process of another language that has to stop first; absent for Python.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        grace_ms: Option<u64>,
    },
    /// Requests a variable as an output.
    Get {
        /// Number of the request.
        cell: u64,
        /// The variable.
        name: String,
    },
    /// Binds an input, read from a path or from one blob, to a name.
    Bind {
        /// Number of the request.
        cell: u64,
        /// The name to bind.
        name: String,
        /// Format of the bytes.
        format: InputFormat,
        /// Path in the sandbox; absent if the bytes are in blob 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
    },
    /// Requests the list of variables.
    Variables {
        /// Number of the request.
        cell: u64,
    },
    /// Clears the namespace.
    Reset {
        /// Number of the request.
        cell: u64,
    },
    /// Makes names and keys different from those of the session that this one was forked from.
    Diverge {
        /// Number of the request.
        cell: u64,
        /// Whether the random generators are seeded anew, too.
        reseed: bool,
    },
    /// Answers a call of the kernel.
    Answer {
        /// Number of the call.
        call: u64,
        /// Result; null if there is an `error`, or if it is in blob 0.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        value: Value,
        /// Whether blob 0 contains the result as JSON, because it is too large for a header.
        #[serde(default, skip_serializing_if = "is_false")]
        value_in_blob: bool,
        /// Error of the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<CallError>,
    },
    /// Keeps a copy of the kernel, answered by `kept`. Sent with a socket attached, on which the copy
    /// waits for `take_over`. A copy answers it there, too, to show that it waits.
    Checkpoint {
        /// Number of the request.
        cell: u64,
    },
    /// Makes a standby the kernel. Sent on the spare channel, with the spare channel of the next
    /// standby attached. Sent to a kept copy on its own socket, with a channel and a spare channel
    /// attached, it makes that copy the kernel, which later puts another in its place.
    TakeOver {
        /// Present if the kept copy was moved to another sandbox, where it is to become the kernel
        /// itself: whether its random generators are seeded anew.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reseed: Option<bool>,
    },
}

impl MessageSet for ToKernel {
    const TYPES: &'static [&'static str] = &[
        "restored",
        "configure",
        "setup",
        "check",
        "execute",
        "get",
        "bind",
        "variables",
        "reset",
        "diverge",
        "answer",
        "checkpoint",
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

/// Condition for making a standby that keeps the state from before a cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rescue {
    /// Never.
    #[default]
    Off,
    /// As soon as the kernel has been idle for a moment.
    Idle,
    /// After every change of the state, before the next message is handled.
    On,
}

/// Strictness of the checks before code runs, from the least to the most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Guard {
    /// No checks.
    #[default]
    Off,
    /// Rejects code that reads the environment or starts processes.
    Standard,
    /// Also rejects `eval`, `exec` and other ways around the language.
    Strict,
}

impl Guard {
    /// Its name in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Standard => "standard",
            Self::Strict => "strict",
        }
    }
}

/// Whether code consists of statements or is an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CellMode {
    /// Statements.
    Exec,
    /// One expression.
    Eval,
}

/// The language of a cell. A session keeps the state of each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    /// Python.
    #[default]
    Python,
    /// Commands of bash.
    Bash,
    /// JavaScript, which Node.js runs.
    Javascript,
    /// R.
    R,
}

impl Language {
    /// All languages.
    pub const ALL: [Self; 4] = [Self::Python, Self::Bash, Self::Javascript, Self::R];

    /// Its name in requests.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Bash => "bash",
            Self::Javascript => "javascript",
            Self::R => "r",
        }
    }

    /// Whether it is Python.
    #[must_use]
    pub const fn is_python(&self) -> bool {
        matches!(self, Self::Python)
    }
}

/// A name, with the part of a file in the sandbox that contains its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reference {
    /// Name to bind.
    pub name: String,
    /// Alias of the tool result. Names of the same alias are bound to the same object.
    pub alias: String,
    /// Format of the bytes.
    pub format: InputFormat,
    /// Path of the file.
    pub path: String,
    /// Offset of the value in the file.
    #[serde(default)]
    pub offset: u64,
    /// Length of the value in bytes.
    pub length: u64,
}

/// A connector: functions of the host under one name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bundle {
    /// Name to bind.
    pub name: String,
    /// Description of the connector.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Its functions.
    pub functions: Vec<Card>,
    /// The reason why its functions are not known yet; a call asks for them again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

/// A function of a connector.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Card {
    /// Name by which the connector knows the function.
    pub name: String,
    /// Name by which code calls it: a valid Python identifier, unique in the connector.
    pub function: String,
    /// Description of the function.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// JSON Schema of the arguments, which are an object.
    #[serde(default)]
    pub parameters: Value,
    /// JSON Schema of the result, if the connector declares one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returns: Option<Value>,
    /// Effect of a call.
    #[serde(default)]
    pub effect: FetchEffect,
}

/// Effect of a call of a connector's function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FetchEffect {
    /// Nothing, so that an equal call has the same answer.
    #[default]
    Reads,
    /// It may change something, so that each call is made.
    Writes,
}

/// Limits of a cell's outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutputLimits {
    /// Maximum number of outputs.
    pub outputs: u32,
    /// Maximum number of bytes of one output's blobs.
    pub output_bytes: u64,
    /// Maximum number of characters of a text.
    pub text_chars: u64,
    /// Number of rows at the start, and at the end, of a table that exceeds the limit.
    pub rows_preview: u32,
    /// Maximum size of a result as JSON, in bytes.
    #[serde(default = "result_bytes")]
    pub result_bytes: u64,
}

fn result_bytes() -> u64 {
    4 * 1024 * 1024
}

/// Format of an input.
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
    /// Raw bytes.
    Bytes,
    /// A JSON document, bound as a Python object.
    Value,
}

/// A message from a kernel to the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromKernel {
    /// The kernel is ready.
    Hello {
        /// Generation of the kernel's protocol.
        generation: u32,
        /// Process id in the sandbox.
        pid: u32,
        /// Python's version.
        python: String,
    },
    /// A cell showed a value.
    Output {
        /// The cell.
        cell: u64,
        /// Number of the output within the cell, from 0.
        index: u32,
        /// The value.
        output: Output,
        /// ID of the display, by which code can replace it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        display_id: Option<String>,
        /// Whether the value replaces what was shown under that ID.
        #[serde(default, skip_serializing_if = "is_false")]
        update: bool,
    },
    /// A request has ended.
    Done {
        /// The cell.
        cell: u64,
        /// Outcome of the request.
        outcome: KernelOutcome,
        /// Duration in microseconds.
        #[serde(default)]
        duration_us: u64,
        /// The raised exception.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<CellError>,
        /// The variables, if requested.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        variables: Option<Vec<Variable>>,
        /// Number of outputs beyond the limit.
        #[serde(default)]
        outputs_dropped: u32,
        /// Violations that the guard found.
        #[serde(default)]
        rejections: Vec<Rejection>,
        /// Whether the collected directories are empty, so that they need not be searched. A wrong
        /// value only withholds the sender's own files.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        no_files: bool,
        /// Findings of the code's helpers about its data, at most 100.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        findings: Vec<Finding>,
        /// Effects of the code on variables, if requested.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        names: Option<CellNames>,
    },
    /// Code in the sandbox calls the host.
    Call {
        /// Number of the call, to be repeated in the response.
        call: u64,
        /// Name of the method.
        method: String,
        /// Parameters of the method.
        #[serde(default)]
        params: Value,
    },
    /// A standby holds the current state, or cannot be made.
    Standby {
        /// Number of messages that have changed the state: `configure`, `setup`, `execute`, `bind`
        /// and `reset`.
        changes: u64,
        /// Process id of the standby in the sandbox.
        #[serde(default)]
        pid: Option<u32>,
        /// The reason why there is no standby.
        #[serde(default)]
        refused: Option<Obstacle>,
    },
    /// Answers `checkpoint`.
    Kept {
        /// Number of the request.
        cell: u64,
        /// Process id of the copy in the sandbox.
        #[serde(default)]
        pid: Option<u32>,
        /// The reason why there is no copy.
        #[serde(default)]
        refused: Option<Obstacle>,
        /// Estimate of the memory that the copy takes up at first, in bytes.
        #[serde(default)]
        bytes: u64,
        /// Number of the socket on which the copy waits, if it is the copy that answers.
        #[serde(default)]
        socket: u32,
        /// Property that a rollback would bring back and that cannot be moved to another sandbox.
        #[serde(default)]
        bound: Option<Obstacle>,
    },
}

impl MessageSet for FromKernel {
    const TYPES: &'static [&'static str] = &["hello", "output", "done", "call", "standby", "kept"];
}

/// The error of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallError {
    /// Kind of the failure.
    pub code: String,
    /// Description of the failure, and how to fix it.
    pub message: String,
    /// Additional numbers: an object, such as `{"retry_after": 3.0}`.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub details: Value,
}
