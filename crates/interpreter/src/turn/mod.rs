//! A turn: one request of a user, the model calls that answer it, and the tools that these use.
//!
//! ```text
//! Turn::run ── Model::step ──> Answer ─────────────────────────────> TurnOutcome
//!     ▲             └────────> Tools ─┬─ Tools::call ──> Evidence (aliases)
//!     └──── Transcript (budgeted) ────┼─ Deriver::derive (Python, made at the first call)
//!                                     └─ Deriver::render_chart (no Python)
//! ```
//!
//! A turn always ends with something honest: an answer, or a best effort whose [`Gap`]s have to be told to the user. Tools that fail become
//! results that the model reads. The deriver is disposed of on every path, also when a model panics or the turn is cancelled.
//!
//! Nothing here knows a provider or a sandbox: a face implements [`Model`] and [`Tools`], a session stands behind [`Deriver`].

mod best_effort;
mod deriver;
mod evidence;
mod model;
mod outcome;
mod plan;
mod progress;
mod run;
#[cfg(test)]
mod tests;
mod transcript;

pub use crate::contract::DerivationCall;
pub use crate::derivation::tools::ToolDefinition;
pub use best_effort::Reader;
pub use deriver::{Derived, Deriver, Emitted};
pub use evidence::{Evidence, ToolError, Tools};
pub use model::{Model, ModelError, Step, ToolCall};
pub use outcome::{Conclusion, Gap, StopReason, TurnError, TurnOutcome};
pub use plan::{Budget, ChartIntent, Plan};
pub use progress::{Progress, Stop};
pub use run::Turn;
pub use transcript::{Entry, Transcript};
