//! Sandboxes for other Cellblocks, `GET /v1/sandbox`.

use cellblock_gateway::{Options, RemoteOptions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sandboxes for other Cellblocks, `GET /v1/sandbox`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Remote {
    /// Provide sandboxes to other Cellblocks, whose `sandbox_url` is this server. Clients with a
    /// key can then run any code in them, without the quotas on cells.
    pub(crate) serve: bool,
}

impl Remote {
    pub(in crate::config) fn apply(&self, options: &mut Options) {
        options.remote = RemoteOptions { serve: self.serve };
    }
}
