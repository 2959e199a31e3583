//! How turns fetch and derive.

use cellblock_interpreter::contract::Attempts;
use cellblock_interpreter::derivation::LowCoverage;

/// How turns fetch and derive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DerivationOptions {
    /// Whether code declares what it derives from.
    pub contract: ContractRule,
    /// How many derivations in a row may fail in a turn.
    pub max_attempts: u32,
    /// What becomes of a chart whose lines have gaps.
    pub low_coverage: LowCoverage,
    /// Model calls on top of a turn's where a chart was asked for.
    pub chart_boost: u32,
    /// Tokens of tool results that a model rereads at each step. Names of aliases are kept beyond it.
    pub tokens: usize,
}

/// Whether code declares what it derives from, in turns that have tools to fetch with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContractRule {
    /// It does: code without a contract is not run.
    #[default]
    Required,
    /// It may: code without a contract is run, and does not see what was fetched.
    Optional,
    /// There are no contracts, and no code sees what was fetched.
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
