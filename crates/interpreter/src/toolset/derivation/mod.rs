//! The derivation toolset: Python that derives from tool results, under a contract, and emits what
//! it had declared.
//!
//! ```text
//! DerivationCall ──Derivation::derive──> Derived { outcome, result, artifacts, findings, attempts_left }
//!      contract checked · tool results bound · Python · what was emitted compared with what was declared
//! ```
//!
//! Egress is closed four times: an image with a network client is refused here, sandboxes have no
//! network, the [prompt] forbids fetching, and no cell runs without a contract that names the
//! results it derives from.

mod coverage;
mod derived;
mod emitted;
mod policy;
pub mod probe;
pub mod prompt;
mod render_chart;
mod run;
pub mod tools;
mod toolset;
mod view;

pub use coverage::LOW_COVERAGE;
pub use derived::{BoundInput, CallFailure, DerivationResult, EarlierNames, Envelope};
pub use policy::{COVERAGE_THRESHOLD, DerivationPolicy, LowCoverage};
pub use render_chart::ChartCall;
pub use run::{Derivation, LentResults};
pub use toolset::KIND;
