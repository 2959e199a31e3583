//! Policy of a derivation.

use std::time::Duration;

use cellblock_artifact::Urls;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::contract::{Attempts, ContractPolicy};

/// The share of its axis' time range below which a line is said to cover too little.
pub const COVERAGE_THRESHOLD: f64 = 0.5;

/// Rules for the cells of a derivation.
#[derive(Clone, Debug)]
pub struct DerivationPolicy {
    /// Requirements for contracts.
    pub contract: ContractPolicy,
    /// Maximum number of cells in a row that may fail.
    pub max_attempts: u32,
    /// From 0 to 1; a line of an emitted figure or chart that has finite points for less of its
    /// axis' time range is a finding.
    pub coverage_threshold: f64,
    /// Treatment of a cell with such a line.
    pub low_coverage: LowCoverage,
    /// Maximum time of a cell.
    pub cell_timeout: Duration,
    /// Time for which a sandbox is kept between cells.
    pub idle: Duration,
    /// Packages that cells find beside those of the image.
    pub requirements: Vec<String>,
    /// Addresses of artifacts.
    pub urls: Urls,
}

/// Treatment of a chart with a line that covers little of its time range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LowCoverage {
    /// Report it to the model and the client.
    #[default]
    Report,
    /// Require the model to repair it.
    Reject,
}

impl Default for DerivationPolicy {
    fn default() -> Self {
        Self {
            contract: ContractPolicy::default(),
            max_attempts: Attempts::MAX,
            coverage_threshold: COVERAGE_THRESHOLD,
            low_coverage: LowCoverage::default(),
            cell_timeout: Duration::from_mins(1),
            idle: Duration::from_mins(15),
            requirements: Vec::new(),
            urls: Urls::default(),
        }
    }
}
