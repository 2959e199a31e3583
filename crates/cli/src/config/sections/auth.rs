//! Who may call.

use cellblock_gateway::Options;
use cellblock_gateway::server::AuthOptions;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Authentication. Create keys with `cellblock key create`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Auth {
    /// Require an API key even if none has been created. Beyond loopback, and once a key exists, a
    /// key is always required.
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
