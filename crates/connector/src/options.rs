//! Settings of connectors, as an operator writes them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use cellblock_interpreter::connector::FetchEffect;
use cellblock_settings::{Size, Time};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A connector: functions that code in sessions with the toolset `notebook` can call. The host answers the calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Connector")]
#[serde(deny_unknown_fields)]
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
    /// Retries of requests of functions that only read.
    #[serde(default)]
    pub retries: RetryOptions,
    /// Functions by name.
    #[serde(default)]
    pub functions: IndexMap<String, FunctionOptions>,
    /// Folder of the files. A relative path counts from the configuration's own folder.
    #[serde(default)]
    pub root: Option<PathBuf>,
    /// Tables by name, each a function: a pattern of Parquet, CSV or JSON lines files below `root`, such as `trips/year=*/*.parquet`.
    #[serde(default)]
    pub tables: IndexMap<String, String>,
    /// Types of columns of CSV and JSON lines files, by table and column. The types of others are inferred from the first file.
    #[serde(default)]
    pub columns: IndexMap<String, IndexMap<String, CellType>>,
}

/// Kind of a connector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConnectorType {
    /// A JSON API over HTTP.
    Http,
    /// Parquet, CSV and JSON lines files in a folder of the host.
    Files,
}

impl ConnectorType {
    /// Keys that have a meaning with one type only.
    pub const KEYS: [(&'static str, Self); 13] = [
        ("base_url", Self::Http),
        ("allow_http", Self::Http),
        ("allow_private", Self::Http),
        ("allow_writes", Self::Http),
        ("secrets", Self::Http),
        ("query", Self::Http),
        ("headers", Self::Http),
        ("rate", Self::Http),
        ("retries", Self::Http),
        ("functions", Self::Http),
        ("root", Self::Files),
        ("tables", Self::Files),
        ("columns", Self::Files),
    ];

    /// Returns whether a key of a connector has a meaning with this type.
    pub fn has(self, key: &str) -> bool {
        Self::KEYS
            .iter()
            .all(|(name, kind)| *name != key || *kind == self)
    }

    /// Returns its name in a configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Files => "files",
        }
    }
}

/// Where the value of a secret is read from: an environment variable or a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SecretSource {
    /// Environment variable with the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<String>,
    /// File with the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
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

/// A function of a connector. The keys `get`, `post`, `put`, `patch` and `delete` name its path, such as `/series/{id}`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ConnectorFunction")]
#[serde(default, deny_unknown_fields)]
pub struct FunctionOptions {
    /// Description for the model.
    pub description: String,
    /// Path of a GET request.
    pub get: Option<String>,
    /// Path of a POST request.
    pub post: Option<String>,
    /// Path of a PUT request.
    pub put: Option<String>,
    /// Path of a PATCH request.
    pub patch: Option<String>,
    /// Path of a DELETE request.
    pub delete: Option<String>,
    /// What a call changes. By default, GET requests are `reads` and all others `writes`.
    /// `writes` requires `allow_writes: true`; such calls are never repeated.
    #[schemars(with = "Option<Effect>")]
    pub effect: Option<FetchEffect>,
    /// Parameters by name, each a JSON Schema. A parameter without `default` is required. Those
    /// that neither the path, `query` nor `headers` use are sent in the query, or in the JSON body of POST, PUT and PATCH.
    pub parameters: IndexMap<String, Value>,
    /// Query parameters, in addition to the connector's. `{{ parameters.NAME }}` inserts an argument.
    pub query: IndexMap<String, String>,
    /// Headers, in addition to the connector's.
    pub headers: IndexMap<String, String>,
    /// The table in an answer.
    pub result: Option<ResultOptions>,
    /// Answers in pages.
    pub pages: Option<PageOptions>,
}

/// What a call changes.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
#[expect(dead_code, reason = "stands for the protocol's type in the schema")]
enum Effect {
    /// Nothing: equal calls in a session are one request.
    Reads,
    /// It may change something: each call is made, once.
    Writes,
}

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

/// Answers in pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ConnectorPages")]
#[serde(deny_unknown_fields)]
pub struct PageOptions {
    /// JSONPath of the next page: its URL, or the value of the query parameter `parameter`. The last page has none, or null.
    pub next: String,
    /// Query parameter for the value.
    #[serde(default)]
    pub parameter: Option<String>,
    /// Maximum number of pages; a call with more fails.
    #[serde(default = "most_pages")]
    pub most: u32,
}

/// A maximum number of requests in a time, such as `120/min`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    pub(crate) count: u32,
    unit: &'static str,
    pub(crate) per: Duration,
}

const UNITS: [(&str, u64); 3] = [("s", 1), ("min", 60), ("h", 3600)];

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/');
        let rate = parts.and_then(|(count, unit)| {
            let (unit, seconds) = UNITS.into_iter().find(|(name, _)| *name == unit.trim())?;
            let count = count.trim().parse().ok().filter(|count| *count > 0)?;
            let per = Duration::from_secs(seconds);
            Some(Self { count, unit, per })
        });
        rate.ok_or_else(|| {
            format!("`{text}` is not a rate; write a number and a unit such as `5/s`, `120/min` or `1000/h`")
        })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.count, self.unit)
    }
}

impl Serialize for Rate {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Rate {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Rate".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A maximum number of requests per `s`, `min` or `h`.",
            "type": "string",
            "pattern": r"^ *[1-9]\d* */ *(s|min|h) *$",
        })
    }
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

const fn max_result() -> u64 {
    64 << 20
}

const fn most_pages() -> u32 {
    20
}
