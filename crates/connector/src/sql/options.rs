//! Options of the type `sql`.

use std::path::Path;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::SqlConnector;
use crate::card::name_mistakes;
use crate::options::{GivenValue, TypeOptions};
use crate::recipe::{ConnectorRecipe, ConnectorResult, OptionMistake, checked};

/// Options of the type `sql` only.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SqlOptions {
    /// Database: an environment variable or a file with its URL, such as
    /// `postgres://user:password@host/database` or `mysql://…`, or the URL itself if it has no
    /// password, such as `sqlite:data/x.db`. A relative path counts from the configuration's own
    /// folder.
    #[serde(default)]
    pub url: Option<GivenValue>,
    /// Allow connections to private, link-local and loopback addresses.
    #[serde(default)]
    pub allow_private: bool,
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
    /// Functions by name.
    #[serde(default)]
    pub functions: IndexMap<String, SqlFunction>,
}

const fn max_rows() -> u64 {
    1_000_000
}

/// A statement as a function.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(default)]
pub struct SqlFunction {
    /// Description for the model.
    pub description: String,
    /// Statement of a database, which reads, such as `select * from orders where day >= :since`.
    /// `:since` is the parameter of that name, which the database binds.
    pub sql: Option<String>,
    /// Parameters by name, each a JSON Schema. A parameter without `default` is required.
    pub parameters: IndexMap<String, Value>,
}

impl ConnectorRecipe for TypeOptions<SqlOptions> {
    fn connector(&self, name: &str, folder: Option<&Path>) -> ConnectorResult {
        let mut mistakes = self.calls.mistakes();
        mistakes.extend(name_mistakes("functions", self.own.functions.keys()));
        if self.own.max_rows == 0 {
            mistakes.push(OptionMistake::new(&["max_rows"], "must be at least 1"));
        }
        let mut wrong = |problem| mistakes.push(OptionMistake::new(&["url"], problem));
        let url = match &self.own.url {
            Some(GivenValue::Text(url)) => {
                if has_password(url) {
                    let text = "a configuration must not contain a password; read the URL with \
                                `{env: NAME}` or `{file: PATH}`";
                    wrong(text.to_owned());
                }
                Some(url.clone())
            }
            Some(GivenValue::Secret(secret)) => secret.read(folder).map_err(wrong).ok().flatten(),
            None => None,
        };
        let folder = folder.unwrap_or(Path::new(""));
        checked(mistakes, SqlConnector::new(name, self, url.as_deref(), folder))
    }
}

/// Returns whether a URL has a password, or could have one.
fn has_password(url: &str) -> bool {
    let authority = url.split_once("://").map_or("", |(_, rest)| rest);
    let user = authority.split('/').next().unwrap_or_default().rsplit_once('@');
    user.is_some_and(|(user, _)| user.contains(':')) || url.contains("password=")
}
