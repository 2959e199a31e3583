//! Kinds of connectors, and which keys each has.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Kind of a connector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConnectorType {
    /// A JSON API over HTTP.
    Http,
    /// Parquet, CSV and JSON lines files in a folder of the host or in S3.
    Files,
    /// A program of any language that answers calls over its stdin and stdout.
    Command,
    /// Functions of a Python module, in a process of its own.
    Python,
    /// Tools of a server of `mcp_servers`, under a name of their own.
    Mcp,
    /// A Postgres, MySQL, MariaDB or SQLite database.
    Sql,
    /// A JSON API that an OpenAPI document describes.
    Openapi,
}

use ConnectorType::{Command, Files, Http, Mcp, Openapi, Python, Sql};

impl ConnectorType {
    /// Keys that have a meaning with some types only, with these types.
    pub const KEYS: &[(&'static str, &'static [Self])] = &[
        ("base_url", &[Http, Openapi]),
        ("allow_http", &[Http, Openapi]),
        ("allow_private", &[Http, Openapi, Sql]),
        ("allow_writes", &[Http, Openapi, Command, Python]),
        ("secrets", &[Http, Openapi]),
        ("query", &[Http, Openapi]),
        ("headers", &[Http, Openapi]),
        ("rate", &[Http, Openapi]),
        ("retries", &[Http, Openapi]),
        ("memo", &[Http, Openapi, Files, Command, Python, Sql]),
        ("functions", &[Http, Sql]),
        ("root", &[Files]),
        ("tables", &[Files]),
        ("columns", &[Files]),
        ("command", &[Command]),
        ("env", &[Command, Python]),
        ("start_timeout", &[Command, Python]),
        ("module", &[Python]),
        ("packages", &[Python]),
        ("python", &[Python]),
        ("bind", &[Python]),
        ("server", &[Mcp]),
        ("tools", &[Mcp]),
        ("url", &[Sql]),
        ("allow_unencrypted", &[Sql]),
        ("free_sql", &[Sql]),
        ("max_rows", &[Sql]),
        ("document", &[Openapi]),
        ("operations", &[Openapi]),
    ];

    /// Returns whether a key of a connector has a meaning with this type.
    pub fn has(self, key: &str) -> bool {
        Self::KEYS
            .iter()
            .all(|(name, types)| *name != key || types.contains(&self))
    }

    /// Keys of a function that have a meaning with some types only, with these types.
    pub const FUNCTION_KEYS: &[(&'static str, &'static [Self])] = &[
        ("get", &[Http]),
        ("post", &[Http]),
        ("put", &[Http]),
        ("patch", &[Http]),
        ("delete", &[Http]),
        ("effect", &[Http]),
        ("query", &[Http]),
        ("headers", &[Http]),
        ("result", &[Http]),
        ("pages", &[Http]),
        ("sql", &[Sql]),
    ];

    /// Returns whether a key of a function has a meaning with this type.
    pub fn function_has(self, key: &str) -> bool {
        Self::FUNCTION_KEYS
            .iter()
            .all(|(name, types)| *name != key || types.contains(&self))
    }

    /// Returns its name in a configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Http => "http",
            Files => "files",
            Command => "command",
            Python => "python",
            Mcp => "mcp",
            Sql => "sql",
            Openapi => "openapi",
        }
    }
}
