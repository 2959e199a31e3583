//! How a request is answered.

use cellblock_agent::tools::{ContractRule, DerivationOptions};
use cellblock_interpreter::derivation::LowCoverage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::check::Check;

/// Limits and rules of a turn.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Turn {
    /// Maximum number of model calls for one response.
    pub(crate) max_steps: u32,
    /// Additional steps if the request's metadata sets `chart_intent` to `explicit`.
    pub(crate) chart_steps: u32,
    /// Whether code must declare the tool results that it derives from, in turns with tools of MCP
    /// servers.
    pub(crate) contract: Contract,
    /// Maximum number of failed derivations in a row; then the interpreter is unavailable for the
    /// rest of the turn.
    pub(crate) max_attempts: u32,
    /// How to treat a chart with a line that covers little of its time range.
    pub(crate) low_coverage: Coverage,
    /// Maximum number of tokens of tool results that a model sees at each step; the names of all
    /// results are always included.
    pub(crate) tool_tokens: usize,
}

/// Whether code must declare what it derives from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Contract {
    /// Code without a contract does not run.
    Required,
    /// Code without a contract runs, but does not see the results.
    Optional,
    /// There are no contracts, and code never sees the results.
    #[serde(rename = "none")]
    Off,
}

/// How to treat a chart with a line that covers little of its time range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Coverage {
    /// Report it to the model and the client.
    Report,
    /// Require the model to repair it.
    Reject,
}

impl Default for Turn {
    fn default() -> Self {
        let options = DerivationOptions::default();
        Self {
            max_steps: 20,
            chart_steps: options.chart_boost,
            contract: Contract::Required,
            max_attempts: options.max_attempts,
            low_coverage: Coverage::Report,
            tool_tokens: options.tokens,
        }
    }
}

impl Turn {
    pub(in crate::config) fn derivation(&self) -> DerivationOptions {
        DerivationOptions {
            contract: match self.contract {
                Contract::Required => ContractRule::Required,
                Contract::Optional => ContractRule::Optional,
                Contract::Off => ContractRule::Off,
            },
            max_attempts: self.max_attempts,
            low_coverage: match self.low_coverage {
                Coverage::Report => LowCoverage::Report,
                Coverage::Reject => LowCoverage::Reject,
            },
            chart_boost: self.chart_steps,
            tokens: self.tool_tokens,
        }
    }

    pub(in crate::config) fn check(&self, check: &mut Check<'_>) {
        if self.max_steps == 0 {
            check.wrong(
                &["turn", "max_steps"],
                "without a step there is no answer; write 1 or more",
            );
        }
        if self.max_attempts == 0 {
            check.wrong(
                &["turn", "max_attempts"],
                "without an attempt nothing is derived; write 1 or more, or `contract: none`",
            );
        }
    }
}
