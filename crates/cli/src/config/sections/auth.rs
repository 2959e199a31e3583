//! Who may call.

use cellblock_gateway::Options;
use cellblock_gateway::server::AuthOptions;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who may call. Keys are made by `cellblock key create`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Auth {
    /// Whether a key is asked for although there is none yet. Beyond loopback, and once there is a key, one is asked for in any case.
    pub(crate) required: bool,
}

impl Default for Auth {
    fn default() -> Self {
        let AuthOptions { required } = AuthOptions::default();
        Self { required }
    }
}

impl Auth {
    pub(in crate::config) fn apply(&self, options: &mut Options) {
        options.auth = AuthOptions {
            required: self.required,
        };
    }
}
