//! Options of the dialect.

use std::path::PathBuf;
use std::time::Duration;

use cellblock_settings::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The Code API of LibreChat, at `/librechat`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "LibreChat")]
#[serde(default, deny_unknown_fields)]
pub struct LibreChatOptions {
    /// Tokens that LibreChat signs for its users. Without it, callers send API keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwt: Option<JwtOptions>,
    /// Idle timeout of a conversation's sandbox.
    #[serde(with = "Time")]
    pub idle_timeout: Duration,
    /// Time after its last use at which a storage session is forgotten.
    #[serde(with = "Time")]
    pub retention: Duration,
    /// Maximum number of files in the storage sessions of an owner.
    pub max_files: usize,
}

impl Default for LibreChatOptions {
    fn default() -> Self {
        Self {
            jwt: None,
            idle_timeout: Duration::from_mins(20),
            retention: Duration::from_hours(24),
            max_files: 10_000,
        }
    }
}

/// Issuer of tokens, and their audience.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "LibreChatJwt")]
#[serde(default, deny_unknown_fields)]
pub struct JwtOptions {
    /// Public keys.
    pub keys: Vec<JwtKey>,
    /// Required claim `iss`.
    pub issuer: String,
    /// Required claim `aud`.
    pub audience: String,
}

impl Default for JwtOptions {
    fn default() -> Self {
        Self {
            keys: Vec::new(),
            issuer: "librechat".to_owned(),
            audience: "codeapi".to_owned(),
        }
    }
}

/// A public key.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "LibreChatJwtKey")]
#[serde(deny_unknown_fields)]
pub struct JwtKey {
    /// ID of the key in the header of a token.
    pub kid: String,
    /// File with the key as PEM (`BEGIN PUBLIC KEY`) or as a JSON Web Key: Ed25519 or RSA.
    pub file: PathBuf,
}
