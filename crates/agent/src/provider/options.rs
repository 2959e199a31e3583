//! Options of requests to a provider.

use std::time::Duration;

use cellblock_settings::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Timeouts of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
    /// Timeout for connecting.
    #[serde(with = "Time")]
    pub connect: Duration,
    /// Timeout until the answer begins.
    #[serde(with = "Time")]
    pub first: Duration,
    /// Maximum pause within an answer.
    #[serde(with = "Time")]
    pub idle: Duration,
    /// Maximum duration of an answer.
    #[serde(with = "Time")]
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first: Duration::from_mins(5),
            idle: Duration::from_mins(2),
            total: Duration::from_mins(30),
        }
    }
}

/// Retries of requests to a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Retries {
    /// Number of retries after the first attempt.
    pub count: u32,
    /// Wait before the first retry; it doubles for each further retry.
    #[serde(with = "Time")]
    pub first_wait: Duration,
    /// Maximum wait, also if the provider's `Retry-After` is longer.
    #[serde(with = "Time")]
    pub max_wait: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            count: 2,
            first_wait: Duration::from_millis(500),
            max_wait: Duration::from_secs(20),
        }
    }
}
