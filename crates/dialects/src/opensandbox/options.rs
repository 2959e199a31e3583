//! Options of the dialect.

use std::time::Duration;

use cellblock_settings::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The OpenSandbox protocol, at `/opensandbox`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "OpenSandbox")]
#[serde(default, deny_unknown_fields)]
pub struct OpenSandboxOptions {
    /// Maximum lifetime of a sandbox; also the lifetime of one that is created without a `timeout`.
    #[serde(with = "Time")]
    pub max_lifetime: Duration,
}

impl Default for OpenSandboxOptions {
    fn default() -> Self {
        Self {
            max_lifetime: Duration::from_hours(24),
        }
    }
}
