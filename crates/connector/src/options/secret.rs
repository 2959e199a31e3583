//! Sources of secrets.

use std::io;
use std::path::{Path, PathBuf};

use cellblock_interpreter::connector::MIN_SECRET_BYTES;
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

impl SecretSource {
    /// Reads the secret, whose file counts from a folder. Without one, only checks that there is exactly one
    /// source. The error continues a sentence that starts with the key.
    pub fn read(&self, folder: Option<&Path>) -> Result<Option<String>, String> {
        let value = match (&self.env, &self.file) {
            (None, None) | (Some(_), Some(_)) => {
                return Err("must have `env`, an environment variable, or `file`, and not both".to_owned());
            }
            _ if folder.is_none() => return Ok(None),
            (Some(name), None) => variable(name)?,
            (None, Some(path)) => secret_file(&folder.unwrap_or(Path::new("")).join(path))?,
        };
        if value.len() < MIN_SECRET_BYTES {
            return Err(format!(
                "the value is shorter than {MIN_SECRET_BYTES} bytes, so it could not be removed from \
                 answers; use a longer one"
            ));
        }
        Ok(Some(value))
    }
}

/// Maximum size of a secret in bytes.
const MOST: u64 = 64 << 10;

/// Reads a secret from an environment variable.
pub fn variable(name: &str) -> Result<String, String> {
    let value = std::env::var(name).map_err(|_| {
        format!("read the value: the environment variable `{name}` is not set or is not valid UTF-8")
    });
    filled(&value?)
}

/// Reads a secret from a file.
pub fn secret_file(path: &Path) -> Result<String, String> {
    let failed = |error| format!("read the value from `{}`: {error}", path.display());
    let size = std::fs::metadata(path).map_err(failed)?.len();
    if size > MOST {
        let text = format!("the file has {size} bytes; the maximum is {MOST}");
        return Err(failed(io::Error::other(text)));
    }
    filled(&std::fs::read_to_string(path).map_err(failed)?)
}

/// Returns a value without the line end of its file.
fn filled(value: &str) -> Result<String, String> {
    match value.trim() {
        "" => Err("read the value: it is empty".to_owned()),
        value => Ok(value.to_owned()),
    }
}

/// Returns whether a name says that its value is a secret.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_lowercase();
    let words = [
        "key",
        "token",
        "secret",
        "password",
        "passwd",
        "authorization",
        "cookie",
        "credential",
    ];
    words.iter().any(|word| name.contains(word))
}
