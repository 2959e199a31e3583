//! Settings of connectors, as an operator writes them.

mod function;
mod kind;
mod memo;
mod rate;
mod secret;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use cellblock_interpreter::connector::MemoPolicy;
use cellblock_settings::{Size, Time};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use function::{CellType, FunctionOptions, PageOptions, ResultOptions};
pub use kind::ConnectorType;
pub use rate::Rate;
pub use secret::{GivenValue, SecretSource};

/// A connector: functions that code in sessions with the toolset `notebook` can call. The host
/// answers the calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Connector")]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a permission of its own")]
pub struct ConnectorOptions {
    /// Kind of the connector.
    #[serde(rename = "type")]
    pub kind: ConnectorType,
    /// Description for the model.
    #[serde(default)]
    pub description: String,
    /// URL below which all requests are made, such as `https://api.example.com/v1`. Redirects to
    /// another host are not followed.
    #[serde(default)]
    pub base_url: Option<String>,
    /// Allow sending requests and secrets to another machine over unencrypted `http://`.
    #[serde(default)]
    pub allow_http: bool,
    /// Allow connections to private, link-local and loopback addresses.
    #[serde(default)]
    pub allow_private: bool,
    /// Allow functions with `effect: writes`.
    #[serde(default)]
    pub allow_writes: bool,
    /// Secrets by name, for `{{ secrets.NAME }}` in `query` and `headers`. They are removed from
    /// everything that comes back.
    #[serde(default)]
    pub secrets: BTreeMap<String, SecretSource>,
    /// Query parameters of every request.
    #[serde(default)]
    pub query: IndexMap<String, String>,
    /// Headers of every request.
    #[serde(default)]
    pub headers: IndexMap<String, String>,
    /// Maximum rate of requests, such as `120/min`. Further requests wait.
    #[serde(default)]
    pub rate: Option<Rate>,
    /// Timeout of a call, including waits, retries and all pages.
    #[serde(with = "Time", default = "timeout")]
    pub timeout: Duration,
    /// Maximum size of an answer, of all its pages together.
    #[serde(with = "Size", default = "max_result")]
    pub max_result: u64,
    /// Calls that get the answer of an equal earlier one: `session`, those of the same session; a time such
    /// as `15m`, those within it in all sessions of the same key; `off`, none.
    #[serde(with = "memo", default)]
    #[schemars(schema_with = "memo::schema")]
    pub memo: MemoPolicy,
    /// Retries of requests of functions that only read.
    #[serde(default)]
    pub retries: RetryOptions,
    /// Functions by name.
    #[serde(default)]
    pub functions: IndexMap<String, FunctionOptions>,
    /// Database: an environment variable or a file with its URL, such as
    /// `postgres://user:password@host/database` or `mysql://…`, or the URL itself if it has no
    /// password, such as `sqlite:data/x.db`. A relative path counts from the configuration's own
    /// folder.
    #[serde(default)]
    pub url: Option<GivenValue>,
    /// Allow sending queries and the password to another machine unencrypted, with
    /// `sslmode=disable` in the URL.
    #[serde(default)]
    pub allow_unencrypted: bool,
    /// Offer the function `sql`, which runs any one statement that reads.
    #[serde(default)]
    pub free_sql: bool,
    /// Maximum number of rows of an answer of a database; a call with more fails.
    #[serde(default = "max_rows")]
    pub max_rows: u64,
    /// OpenAPI document of the API, in JSON or YAML, of version 3.0 or 3.1. Its first server is the
    /// default of `base_url`. A relative path counts from the configuration's own folder.
    #[serde(default)]
    pub document: Option<PathBuf>,
    /// Operations of the document that are offered, by `operationId`. By default, all GET operations.
    #[serde(default)]
    pub operations: Vec<String>,
    /// Folder of the files, or `s3://bucket/prefix/`, whose credentials and server are in the
    /// environment (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL` and related variables). A relative path
    /// counts from the configuration's own folder.
    #[serde(default)]
    pub root: Option<PathBuf>,
    /// Tables by name, each a function: a pattern of Parquet, CSV or JSON lines files below `root`,
    /// such as `trips/year=*/*.parquet`.
    #[serde(default)]
    pub tables: IndexMap<String, String>,
    /// Types of columns of CSV and JSON lines files, by table and column. The types of others are
    /// inferred from the first file.
    #[serde(default)]
    pub columns: IndexMap<String, IndexMap<String, CellType>>,
    /// The program and its arguments. It runs on the host in the configuration's own folder, is
    /// started on first use and again after its end.
    #[serde(default)]
    pub command: Vec<String>,
    /// Environment variables of the program, in addition to `PATH`, `HOME` and `LANG`: text, or a
    /// secret by `{env: NAME}` or `{file: PATH}`.
    #[serde(default)]
    pub env: BTreeMap<String, GivenValue>,
    /// Python module with the functions, such as `macro`, or a bundle, list or dict in it, such as
    /// `macro:CONNECTORS`. It is installed, or beside the configuration.
    #[serde(default)]
    pub module: Option<String>,
    /// Python packages that are installed for the module, such as `parsimony-fred` or `pandas>=2.2,<3`.
    #[serde(default)]
    pub packages: Vec<String>,
    /// Interpreter of the module, version 3.11 or newer: a name on `PATH`, or a path; by default, `python3`.
    #[serde(default)]
    pub python: Option<String>,
    /// Arguments of the module's functions that code neither sees nor sets: text, or a secret by
    /// `{env: NAME}` or `{file: PATH}`.
    #[serde(default)]
    pub bind: BTreeMap<String, GivenValue>,
    /// Server of `mcp_servers`, which also has the limits.
    #[serde(default)]
    pub server: Option<String>,
    /// Tools of the server that are functions; by default, all that it offers.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
    /// Timeout for starting the program, and for listing its functions.
    #[serde(with = "Time", default = "start_timeout")]
    pub start_timeout: Duration,
}

/// Retries of a connector's requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RetryOptions {
    /// Number of retries after the first attempt.
    pub count: u32,
    /// HTTP statuses after which a request is repeated. A `Retry-After` of the answer is obeyed; if
    /// it ends after the call's timeout or its cell, the call fails at once.
    pub on: Vec<u16>,
}

impl Default for RetryOptions {
    fn default() -> Self {
        Self {
            count: 2,
            on: vec![429, 502, 503, 504],
        }
    }
}

const fn timeout() -> Duration {
    Duration::from_secs(30)
}

const fn start_timeout() -> Duration {
    Duration::from_mins(1)
}

const fn max_rows() -> u64 {
    1_000_000
}

const fn max_result() -> u64 {
    64 << 20
}
