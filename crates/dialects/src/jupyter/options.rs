//! Options of Jupyter.

use std::time::Duration;

use cellblock_interpreter::limits::NetworkPolicy;
use cellblock_settings::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Jupyter's REST API and kernel messages, for clients of Jupyter servers and kernel gateways.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct JupyterOptions {
    /// Idle timeout of a kernel.
    #[serde(with = "Time")]
    pub idle_timeout: Duration,
    /// Maximum number of kernels per key.
    pub max_per_key: usize,
    /// Network of kernels, `none`, `loopback` or `egress`; at most what the server and the key allow.
    #[schemars(with = "String")]
    pub network: NetworkPolicy,
}

impl Default for JupyterOptions {
    fn default() -> Self {
        Self {
            idle_timeout: Duration::from_mins(30),
            max_per_key: 128,
            network: NetworkPolicy::Loopback,
        }
    }
}
