//! Options of requests, and of functions that make them.

use std::collections::BTreeMap;
use std::path::Path;

use cellblock_interpreter::connector::FetchEffect;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::options::{Rate, ResultOptions, SecretSource, is_secret};
use crate::recipe::OptionMistake;

/// Options of the type `http` only.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HttpFunctions {
    /// Functions by name.
    pub functions: IndexMap<String, HttpFunction>,
}

/// A function of a connector. Over HTTP, the keys `get`, `post`, `put`, `patch` and `delete` name
/// its path, such as `/series/{id}`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(default)]
pub struct HttpFunction {
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

/// Answers in pages.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
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

/// Options of requests, which the types `http` and `openapi` have.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RequestOptions {
    /// URL below which all requests are made, such as `https://api.example.com/v1`. Redirects to
    /// another host are not followed.
    pub base_url: Option<String>,
    /// Allow sending requests and secrets to another machine over unencrypted `http://`.
    pub allow_http: bool,
    /// Allow connections to private, link-local and loopback addresses.
    pub allow_private: bool,
    /// Allow functions with `effect: writes`.
    pub allow_writes: bool,
    /// Secrets by name, for `{{ secrets.NAME }}` in `query` and `headers`. They are removed from
    /// everything that comes back.
    pub secrets: BTreeMap<String, SecretSource>,
    /// Query parameters of every request.
    pub query: IndexMap<String, String>,
    /// Headers of every request.
    pub headers: IndexMap<String, String>,
    /// Maximum rate of requests, such as `120/min`. Further requests wait.
    pub rate: Option<Rate>,
    /// Retries of requests of functions that only read.
    pub retries: RetryOptions,
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

impl RequestOptions {
    /// Checks the options, and reads the secrets. Another value stands for one that is not read.
    pub(crate) fn secrets(
        &self,
        folder: Option<&Path>,
        mistakes: &mut Vec<OptionMistake>,
    ) -> BTreeMap<String, String> {
        if self.retries.count > 10 {
            mistakes.push(OptionMistake::new(&["retries", "count"], "must be at most 10"));
        }
        mistakes.extend(written_secrets(&self.query, &self.headers));
        let secrets = self.secrets.iter().map(|(name, secret)| {
            let value = secret.read(folder).unwrap_or_else(|problem| {
                mistakes.push(OptionMistake::new(&["secrets", name], problem));
                None
            });
            (name.clone(), value.unwrap_or_else(|| "unread".to_owned()))
        });
        secrets.collect()
    }
}

/// Returns the mistakes of values that are secrets by their names, and are not inserted.
pub(super) fn written_secrets<'a>(
    query: &'a IndexMap<String, String>,
    headers: &'a IndexMap<String, String>,
) -> impl Iterator<Item = OptionMistake> + 'a {
    let values = [("query", query), ("headers", headers)].into_iter();
    let values = values.flat_map(|(key, values)| values.iter().map(move |(name, value)| (key, name, value)));
    let written = values.filter(|(_, name, value)| is_secret(name) && !value.contains("{{"));
    written.map(|(key, name, _)| {
        let text = "a configuration must not contain secrets; name one in `secrets` and insert it as \
                    `{{ secrets.NAME }}`";
        OptionMistake::new(&[key, name], text)
    })
}
