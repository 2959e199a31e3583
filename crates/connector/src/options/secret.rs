//! Sources of secrets.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A value that a connector gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "must be text, or `{env: NAME}` or `{file: PATH}` with a secret"
)]
pub enum GivenValue {
    /// The value itself, which `config show` prints.
    Text(String),
    /// A secret.
    Secret(SecretSource),
}

/// Source of a secret's value: an environment variable or a file.
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
