//! Containers: the sandboxes of conversations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::check::Check;
use crate::config::units::Time;

/// Containers: the sandboxes of conversations.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Containers {
    /// How long a container is kept while nothing is asked of it.
    pub(crate) idle: Time,
}

impl Default for Containers {
    fn default() -> Self {
        Self {
            idle: Time::seconds(20 * 60),
        }
    }
}

impl Containers {
    pub(in crate::config) fn check(&self, check: &mut Check<'_>) {
        check.positive(&["containers", "idle"], self.idle);
    }
}
