//! Settings for fetching and deriving in turns.

use cellblock_interpreter::contract::Attempts;
use cellblock_interpreter::derivation::LowCoverage;

/// Settings for fetching and deriving in turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DerivationOptions {
    /// Whether code must declare what it derives from.
    pub contract: ContractRule,
    /// Maximum number of consecutive failed derivations in a turn.
    pub max_attempts: u32,
    /// Handling of charts whose lines have gaps.
    pub low_coverage: LowCoverage,
    /// Additional model calls for turns in which a chart was requested.
    pub chart_boost: u32,
    /// Number of tokens of tool results that a model rereads at each step. Names of aliases are
    /// kept even beyond it.
    pub tokens: usize,
}

/// Whether code declares what it derives from, in turns that have tools for fetching.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContractRule {
    /// Code without a contract is not run.
    #[default]
    Required,
    /// Code without a contract is run, and does not see the fetched data.
    Optional,
    /// There are no contracts, and no code sees the fetched data.
    Off,
}

impl Default for DerivationOptions {
    fn default() -> Self {
        Self {
            contract: ContractRule::default(),
            max_attempts: Attempts::MAX,
            low_coverage: LowCoverage::default(),
            chart_boost: 4,
            tokens: 24_000,
        }
    }
}
