//! Records of runs: what an execution was given, where it ran, and what it made, each by its hash.
//!
//! ```text
//! Actor ──answer──> client
//!   └──ended run──> Recorder ──RunRecord──> RunSink (a queue of the host's)         replay: RunRecord ──fresh session──> RunRecord ──compare──> ReplayReport
//! ```
//!
//! A session makes a record of each cell if it has a [`RunSink`]; nothing is kept otherwise.

mod compare;
mod made;

use std::fmt;

use cellblock_artifact::ArtifactId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use compare::{RunDifference, differences};
pub(crate) use made::{RunMade, failure, hex, sha256};

use crate::cell::{CellMode, Guard, Language, Rescue};
use crate::execution::{ProducedFile, VariablesState};
use crate::input::InputFormat;
use crate::output::ArtifactRef;

/// Maximum size of code that a record repeats; of longer code it has the hash alone.
pub const MAX_CODE: usize = 256 << 10;

/// Takes records of runs, those of a session in the order of its runs. It must not wait: a host
/// queues the records, and counts those that it drops.
pub trait RunSink: fmt::Debug + Send + Sync {
    /// Takes a record.
    fn record(&self, record: RunRecord);

    /// Notes that a run has ended whose record comes soon: its answer does not wait for the record.
    /// Who reads records may wait for those whose [`ExpectedRun`] is not dropped yet.
    fn expect(&self) -> ExpectedRun {
        Box::new(())
    }
}

/// A record that will be taken, or has been taken, when this is dropped.
pub type ExpectedRun = Box<dyn std::any::Any + Send>;

/// One execution of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunRecord {
    /// ID of the run.
    pub id: String,
    /// ID of the session.
    pub session: String,
    /// Number of the cell in its session; 0 if it could not be run.
    pub cell: u64,
    /// Start in milliseconds since 1970.
    pub started_ms: i64,
    /// Code; absent if it has more than 256 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// SHA-256 of the code.
    pub code_sha256: String,
    /// Options of the cell.
    pub call: RunCall,
    /// Setup of the session.
    pub setup: RunSetup,
    /// Inputs that were bound, in the order of their names.
    pub inputs: Vec<RunInput>,
    /// Image of the sandbox.
    pub image: RunImage,
    /// IDs of the layers with additional packages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<String>,
    /// Backend of the sandbox.
    pub backend: String,
    /// Wall around the sandbox in addition to the host's kernel, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall: Option<String>,
    /// State of each protection.
    pub protections: Map<String, Value>,
    /// Limits of the sandbox and the cell.
    pub limits: Map<String, Value>,
    /// Network that code can use: `none`, `loopback` or `egress`.
    pub network: String,
    /// Previous run in the same sandbox, whose variables and files this one found; absent if it is the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Checkpoint that the state before this run comes from, if any: made before it, or rolled back to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_checkpoint: Option<String>,
    /// Whether it ran as a try. A try that was discarded is never the parent of a run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tried: bool,
    /// Whether the session was reset after the previous run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub after_reset: bool,
    /// Dependencies that the run could use and that the record does not contain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<RunDependency>,
    /// Run that this one replays, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay_of: Option<String>,
    /// Calls of connectors, at most 200.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fetches: Vec<RunFetch>,
    /// Outcome of the cell, or `error` if the sandbox failed.
    pub outcome: String,
    /// State of the session's variables.
    pub state: VariablesState,
    /// Exception, limit or failure that ended the run, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    /// Displayed outputs.
    pub outputs: Vec<RecordedOutput>,
    /// Output to stdout.
    pub stdout: RunStream,
    /// Output to stderr.
    pub stderr: RunStream,
    /// Files that were created or changed.
    pub files: Vec<ProducedFile>,
    /// Duration of each stage.
    pub durations: RunDurations,
}

/// Options of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of a cell")]
pub struct RunCall {
    /// File name in tracebacks.
    pub name: String,
    /// Number of the first line.
    pub line: u32,
    /// Language of the code.
    pub language: Language,
    /// Arguments of the code as a script, beginning with its name; absent for the name alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
    /// Statements or one expression.
    pub mode: CellMode,
    /// Whether the value of a trailing expression is displayed.
    pub echo: bool,
    /// Whether names that it binds are kept.
    pub store: bool,
    /// Whether files are collected.
    pub collect_files: bool,
    /// Whether `atexit` handlers ran at its end.
    pub last: bool,
    /// Timeout in milliseconds.
    pub timeout_ms: u64,
    /// Additional packages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requirements: Vec<String>,
}

/// Setup of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunSetup {
    /// Sets of names that are bound at the start.
    pub prelude: Vec<String>,
    /// Level of the check before code runs.
    pub guard: Guard,
    /// Whether variables survive a cell that kills its kernel.
    pub rescue: Rescue,
    /// Code that ran before the first cell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub snippets: Vec<RunSnippet>,
    /// Skills that code could read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<RunSkill>,
}

/// A skill of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunSkill {
    /// ID in its store; absent if it came with the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Name, and the name of its folder.
    pub name: String,
    /// Version.
    pub version: String,
    /// SHA-256 of its archive.
    pub sha256: ArtifactId,
}

/// Code that prepared a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunSnippet {
    /// File name in tracebacks.
    pub name: String,
    /// SHA-256 of the code.
    pub sha256: String,
    /// Code, if the session's owner gave it; the operator's code is not repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// An input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunInput {
    /// Name in the code.
    pub name: String,
    /// Format.
    pub format: InputFormat,
    /// SHA-256 of its bytes; absent if it could not be read again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Number of bytes.
    pub bytes: u64,
}

/// An image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunImage {
    /// Name.
    pub name: String,
    /// Content address.
    pub digest: String,
    /// Version of Python.
    pub python: String,
}

/// Something that a run can use and that its record does not contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunDependency {
    /// Files of the sandbox that were written or removed between cells.
    Files,
    /// Commands that ran between cells.
    Commands,
    /// Processes that were started beside cells.
    Processes,
    /// Files that were mounted as datasets.
    Datasets,
    /// Published datasets of a project.
    Project,
    /// Files of a volume.
    Volume,
    /// Hosts on the network.
    Egress,
    /// Tool results that were bound.
    ToolResults,
}

impl RunDependency {
    /// Describes it in messages.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Files => "files that were written or removed between cells",
            Self::Commands => "commands that ran between cells",
            Self::Processes => "processes beside cells",
            Self::Datasets => "files that were mounted as datasets",
            Self::Project => "published datasets of a project",
            Self::Volume => "files of a volume",
            Self::Egress => "hosts on the network",
            Self::ToolResults => "results of tools",
        }
    }
}

/// A call of a connector.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunFetch {
    /// Connector.
    pub connector: String,
    /// Function.
    pub function: String,
    /// SHA-256 of the arguments as JSON, long ones truncated.
    pub arguments_sha256: String,
    /// `ok`, `canceled`, or the kind of the failure.
    pub outcome: String,
    /// Whether the answer is that of an earlier equal call.
    pub cached: bool,
    /// SHA-256 of the table that was fetched, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// Reason that a run did not complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunError {
    /// Name of the exception, limit, rule or failure.
    #[serde(rename = "type")]
    pub kind: String,
    /// Message, at most 1,000 characters.
    pub message: String,
}

/// A displayed output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedOutput {
    /// Type of the output, such as `dataframe`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Name of the variable or the figure, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// SHA-256 of the output as JSON, which names its artifacts by their hashes.
    pub sha256: String,
    /// Artifacts with its bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<ArtifactRef>,
}

/// Text that was written to a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunStream {
    /// SHA-256 of the text that was kept.
    pub sha256: String,
    /// Number of bytes that were written.
    pub bytes: u64,
    /// Whether the kept text is shortened.
    pub truncated: bool,
}

/// Durations in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunDurations {
    /// Until code began to run: packages, the sandbox and its inputs.
    pub prepare_ms: f64,
    /// While code ran.
    pub run_ms: f64,
    /// After that: files were collected and outputs attributed.
    pub finish_ms: f64,
}

impl RunRecord {
    /// Serializes the record as a host stores it.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }

    /// Reads a record that a host has stored.
    pub fn from_json(json: &str) -> serde_json::Result<Self> {
        serde_json::from_str(json)
    }
}
