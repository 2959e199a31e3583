//! Options of run records.

use std::time::Duration;

use cellblock_settings::{Time, clock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Records of runs, `/v1/runs`: the code of each cell, and the hashes of its inputs and outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RunOptions {
    /// Maximum number of runs that are kept per key; the oldest are removed. `0` records nothing.
    pub keep: usize,
    /// Time for which a run is kept.
    #[serde(with = "Time")]
    pub max_age: Duration,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            keep: 1000,
            max_age: Duration::from_hours(7 * 24),
        }
    }
}

impl RunOptions {
    /// Returns the time before which a run is too old, in milliseconds since 1970.
    pub(crate) fn oldest_ms(&self) -> i64 {
        i64::try_from(clock::now().saturating_sub(self.max_age).as_millis()).unwrap_or(i64::MAX)
    }
}
