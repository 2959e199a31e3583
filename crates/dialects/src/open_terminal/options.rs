//! Options of Open Terminal.

use std::time::Duration;

use cellblock_interpreter::limits::NetworkPolicy;
use cellblock_settings::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Open Terminal, through which Open WebUI gives each chat a sandbox.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OpenTerminalOptions {
    /// Idle timeout of a chat's sandbox.
    #[serde(with = "Time")]
    pub idle_timeout: Duration,
    /// Maximum number of sandboxes per key.
    pub max_per_key: usize,
    /// Network of sandboxes, `none`, `loopback` or `egress`; at most what the server and the key allow.
    #[schemars(with = "String")]
    pub network: NetworkPolicy,
    /// Time for which `run_command` waits for a command if the model gives none.
    #[serde(with = "Time")]
    pub default_wait: Duration,
    /// Text for models, in addition to what a server of this kind says of itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub info: String,
}

impl Default for OpenTerminalOptions {
    fn default() -> Self {
        Self {
            idle_timeout: Duration::from_mins(30),
            max_per_key: 128,
            network: NetworkPolicy::Loopback,
            default_wait: Duration::from_secs(10),
            info: String::new(),
        }
    }
}
