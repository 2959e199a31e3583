//! Limits and rules of a turn.

use cellblock_interpreter::contract::Attempts;
use cellblock_interpreter::derivation::LowCoverage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits and rules of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TurnOptions {
    /// Maximum number of model calls for one response.
    pub max_steps: u32,
    /// Additional steps if the request's metadata sets `chart_intent` to `explicit`.
    pub chart_steps: u32,
    /// Whether code must declare the tool results that it derives from, in turns with tools of MCP
    /// servers.
    pub contract: ContractRule,
    /// Maximum number of failed derivations in a row; then the interpreter is unavailable for the
    /// rest of the turn.
    pub max_attempts: u32,
    /// Treatment of a chart with a line that covers little of its time range.
    pub low_coverage: LowCoverage,
    /// Maximum number of tokens of tool results that a model sees at each step; the names of all
    /// results are always included.
    pub max_tool_tokens: usize,
}

/// Whether code must declare what it derives from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContractRule {
    /// Code without a contract does not run.
    #[default]
    Required,
    /// Code without a contract runs, but does not see the results.
    Optional,
    /// There are no contracts, and code never sees the results.
    #[serde(rename = "none")]
    Off,
}

impl Default for TurnOptions {
    fn default() -> Self {
        Self {
            max_steps: 20,
            chart_steps: 4,
            contract: ContractRule::default(),
            max_attempts: Attempts::MAX,
            low_coverage: LowCoverage::default(),
            max_tool_tokens: 24_000,
        }
    }
}
