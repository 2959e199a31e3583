//! Settings of a function of a connector.

use std::collections::BTreeMap;

use cellblock_interpreter::connector::FetchEffect;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A function of a connector. Over HTTP, the keys `get`, `post`, `put`, `patch` and `delete` name
/// its path, such as `/series/{id}`.
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
    /// Statement of a database, which reads, such as `select * from orders where day >= :since`.
    /// `:since` is the parameter of that name, which the database binds.
    pub sql: Option<String>,
    /// Effect of a call. By default, GET requests are `reads` and all others `writes`. `writes` requires
    /// `allow_writes: true`; such calls are never repeated.
    #[schemars(with = "Option<Effect>")]
    pub effect: Option<FetchEffect>,
    /// Parameters by name, each a JSON Schema. A parameter without `default` is required. Over HTTP, those
    /// that neither the path, `query` nor `headers` use are sent in the query, or in the JSON body
    /// of POST, PUT and PATCH.
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

/// Effect of a call.
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
    /// JSONPath of the next page: its URL, or the value of the query parameter `parameter`. The
    /// last page has none, or null.
    pub next: String,
    /// Query parameter for the value.
    #[serde(default)]
    pub parameter: Option<String>,
    /// Maximum number of pages; a call with more fails.
    #[serde(default = "most_pages")]
    pub most: u32,
}

const fn most_pages() -> u32 {
    20
}
