//! Sandboxes that are kept ready.

use cellblock_sandbox::pool::PoolConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::check::Check;
use cellblock_settings::Time;

/// Sandboxes kept ready.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Pool {
    /// Number of sandboxes kept ready; 0 creates each one on demand.
    pub(crate) ready: usize,
    /// Maximum time that a request waits for a sandbox.
    pub(crate) acquire_timeout: Time,
}

/// More would only fill the memory of any machine that there is.
const MOST_READY: usize = 1024;

impl Default for Pool {
    fn default() -> Self {
        let PoolConfig { ready, acquire_limit } = PoolConfig::default();
        Self {
            ready,
            acquire_timeout: Time(acquire_limit),
        }
    }
}

impl Pool {
    pub(in crate::config) fn check(&self, check: &mut Check<'_>) {
        check.positive(&["pool", "acquire_timeout"], self.acquire_timeout.0);
        if self.ready > MOST_READY {
            check.wrong(&["pool", "ready"], format!("{MOST_READY} sandboxes are the most"));
        }
    }

    /// What the interpreter is told.
    pub(crate) fn config(&self) -> PoolConfig {
        PoolConfig {
            ready: self.ready,
            acquire_limit: self.acquire_timeout.0,
        }
    }
}
