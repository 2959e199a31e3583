//! The list of models, `GET /v1/models`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::check::Check;
use crate::config::units::Time;

/// The list of models, `GET /v1/models`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Models {
    /// Timeout for a provider's list of models.
    pub(crate) list_timeout: Time,
    /// How long a provider's list of models is cached.
    pub(crate) list_cache: Time,
}

impl Default for Models {
    fn default() -> Self {
        Self {
            list_timeout: Time::seconds(3),
            list_cache: Time::seconds(60),
        }
    }
}

impl Models {
    pub(in crate::config) fn check(&self, check: &mut Check<'_>) {
        check.positive(&["models", "list_timeout"], self.list_timeout);
    }
}
