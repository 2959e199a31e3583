//! Requests over HTTP.

use cellblock_gateway::Options;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::check::Check;
use crate::config::units::Bytes;

/// Requests over HTTP.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Http {
    /// The most bytes of a request's body, but of an upload.
    pub(crate) max_body: Bytes,
}

impl Default for Http {
    fn default() -> Self {
        Self {
            max_body: Bytes(16 << 20),
        }
    }
}

impl Http {
    pub(in crate::config) fn apply(&self, options: &mut Options) {
        options.max_body = usize::try_from(self.max_body.0).unwrap_or(usize::MAX);
    }

    pub(in crate::config) fn check(&self, check: &mut Check<'_>) {
        if self.max_body.0 < 1024 {
            check.wrong(
                &["http", "max_body"],
                "no request is so small; write 1KiB or more",
            );
        }
    }
}
