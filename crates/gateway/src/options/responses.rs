//! Options of responses, and of the files and the list of models that go with them.

use std::time::Duration;

use cellblock_agent::wire::Dialect;
use cellblock_settings::{Size, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Stored and background responses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ResponseOptions {
    /// Time for which responses are kept; `null` keeps them forever.
    pub retention: Option<Time>,
    /// Interval of keep-alive comments in a silent stream.
    #[serde(with = "Time")]
    pub keep_alive: Duration,
    /// Maximum time for which a client may stop reading before its response is canceled.
    #[serde(with = "Time")]
    pub stall_timeout: Duration,
    /// Maximum number of background responses that run at the same time; others wait.
    pub max_background: usize,
    /// Maximum number of waiting background responses; more are rejected.
    pub max_queued: usize,
    /// Maximum duration of a WebSocket.
    #[serde(with = "Time")]
    pub socket_timeout: Duration,
    /// Maximum time for which code waits for the client's answers to its calls of the client's functions.
    #[serde(with = "Time")]
    pub function_timeout: Duration,
    /// Events of a stream, unless a request asks for more in its header `X-Cellblock-Events`.
    #[serde(skip)]
    pub dialect: Dialect,
}

impl Default for ResponseOptions {
    fn default() -> Self {
        Self {
            retention: Some(Time(Duration::from_hours(30 * 24))),
            keep_alive: Duration::from_secs(15),
            stall_timeout: Duration::from_mins(1),
            max_background: 32,
            max_queued: 256,
            socket_timeout: Duration::from_hours(1),
            function_timeout: Duration::from_mins(10),
            dialect: Dialect::default(),
        }
    }
}

/// Uploaded files.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FileOptions {
    /// Maximum size of an upload.
    #[serde(with = "Size")]
    pub max_upload: u64,
    /// Maximum size of file text that a model reads in a request without the interpreter.
    #[serde(with = "Size")]
    pub max_inline_text: u64,
    /// Maximum size of an image that a model is shown.
    #[serde(with = "Size")]
    pub max_image: u64,
}

impl Default for FileOptions {
    fn default() -> Self {
        Self {
            max_upload: 512 << 20,
            max_inline_text: 256 << 10,
            max_image: 20 << 20,
        }
    }
}

/// The list of models, `GET /v1/models`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelListOptions {
    /// Timeout for a provider's list of models.
    #[serde(with = "Time")]
    pub list_timeout: Duration,
    /// Time for which a provider's list of models is cached.
    #[serde(with = "Time")]
    pub list_cache: Duration,
}

impl Default for ModelListOptions {
    fn default() -> Self {
        Self {
            list_timeout: Duration::from_secs(3),
            list_cache: Duration::from_mins(1),
        }
    }
}
