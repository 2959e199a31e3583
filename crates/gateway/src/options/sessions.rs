//! Options of our own REST: sessions, and the sandbox server of one call.

use std::time::Duration;

use cellblock_interpreter::session::hibernate::OnIdle;
use cellblock_interpreter::toolset::{TOOLSETS, ToolsetKind};
use cellblock_settings::{Size, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sessions of the REST API, `/v1/sessions`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SessionsOptions {
    /// Maximum number of sessions at a time per key.
    pub max_per_key: usize,
    /// Default idle timeout of a session.
    #[serde(with = "Time")]
    pub idle_timeout: Duration,
    /// Maximum idle timeout that a request can set.
    #[serde(with = "Time")]
    pub max_idle_timeout: Duration,
    /// Action at the idle timeout of a session: `end`, or `hibernate`, which frees its memory and keeps its
    /// files, and with the backends `gvisor` and `microvm` also its variables. A request can choose.
    pub on_idle: OnIdle,
    /// Time after which a session ends that was hibernated because it was idle.
    #[serde(with = "Time")]
    pub hibernation_timeout: Duration,
    /// Maximum number of finished cells that a session keeps.
    pub max_cells: usize,
    /// Maximum size of an upload: a file, an input or a dataset.
    #[serde(with = "Size")]
    pub max_upload: u64,
    /// Maximum size of all inputs and datasets of a session.
    #[serde(with = "Size")]
    pub max_data: u64,
    /// Maximum bytes of JSON of the cells that a session keeps; the last cell is always kept.
    #[serde(skip)]
    pub max_cell_bytes: usize,
    /// Toolsets that a session can have, and that a request for a response can name.
    #[serde(skip)]
    pub toolsets: Vec<ToolsetKind>,
    /// Maximum number of requests that wait for the one that uses their session.
    #[serde(skip)]
    pub max_waiting: usize,
}

impl Default for SessionsOptions {
    fn default() -> Self {
        Self {
            max_per_key: 50,
            idle_timeout: Duration::from_mins(15),
            max_idle_timeout: Duration::from_hours(24),
            on_idle: OnIdle::End,
            hibernation_timeout: Duration::from_hours(24),
            max_cells: 50,
            max_upload: 256 << 20,
            max_data: 1 << 30,
            max_cell_bytes: 8 << 20,
            toolsets: TOOLSETS.to_vec(),
            max_waiting: 16,
        }
    }
}

/// The sandbox server, `POST /execute`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ExecuteOptions {
    /// Maximum number of concurrent executions; further requests are asked to retry later.
    pub max_concurrent: usize,
    /// Default timeout of a program.
    #[serde(with = "Time")]
    pub timeout: Duration,
    /// Maximum timeout that a request can set.
    #[serde(with = "Time")]
    pub max_timeout: Duration,
    /// Maximum size of a request.
    #[serde(with = "Size")]
    pub max_body: usize,
    /// Maximum time until a request's body is complete.
    #[serde(skip)]
    pub body_timeout: Duration,
    /// Maximum bytes of each of stdout and stderr in an answer: the first and the last halves of it.
    #[serde(skip)]
    pub max_stream: usize,
    /// Maximum number of files in an answer.
    #[serde(skip)]
    pub max_files: u32,
    /// Maximum bytes of a file in an answer.
    #[serde(skip)]
    pub max_file: u64,
    /// Maximum bytes of all files in an answer.
    #[serde(skip)]
    pub max_all_files: u64,
}

impl Default for ExecuteOptions {
    fn default() -> Self {
        Self {
            max_concurrent: 3,
            timeout: Duration::from_secs(30),
            max_timeout: Duration::from_hours(1),
            max_body: 10 << 20,
            body_timeout: Duration::from_secs(30),
            max_stream: 10_000_000,
            max_files: 64,
            max_file: 10 << 20,
            max_all_files: 32 << 20,
        }
    }
}
