//! How a request is answered.

use cellblock_gateway::Options;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::check::Check;

/// How a request is answered.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Turn {
    /// The most times that a model is asked for one response.
    pub(crate) max_steps: u32,
}

impl Default for Turn {
    fn default() -> Self {
        Self { max_steps: 20 }
    }
}

impl Turn {
    pub(in crate::config) fn apply(&self, options: &mut Options) {
        options.max_steps = self.max_steps;
    }

    pub(in crate::config) fn check(&self, check: &mut Check<'_>) {
        if self.max_steps == 0 {
            check.wrong(
                &["turn", "max_steps"],
                "without a step there is no answer; write 1 or more",
            );
        }
    }
}
