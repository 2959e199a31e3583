//! The contract of a derivation cell: its declaration before it runs, and the artifacts that it
//! must have emitted at its end.
//!
//! ```text
//! arguments ─DerivationCall::read─> call ─check_before─> Contract ─(Python)─> emitted ─check_after─> accepted
//!      └────────── Rejection ──────────┴───── Rejection ────┘                        └── Rejection
//! ```
//!
//! Nothing here starts a sandbox. All problems of a call are reported at once, in the order of its
//! fields, as [`Rejection`]s on which a model can act: the problem, the given value, the valid
//! values, and the fix. [`CODES`] lists every code; [`Attempts`] limits a model's failed attempts.
//!
//! [`Rejection`]: crate::execution::Rejection

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod after;
mod attempts;
mod before;
mod call;
mod codes;
mod fields;
mod found;
mod inputs;
mod names;
#[cfg(test)]
mod tests;
mod wording;

pub use after::check_after;
pub use attempts::Attempts;
pub use before::{ContractCall, check_before};
pub use call::DerivationCall;
pub use codes::{ATTEMPTS_EXHAUSTED, CODES, ContractCode, ContractStage};
pub(crate) use fields::{required, text, wrong_type};
pub(crate) use found::Mistakes;
pub use names::{HELPERS, PRELUDE, ReservedReason, is_identifier, reserved};
pub(crate) use wording::{plain, quote, unknown_alias};

/// Default maximum number of artifacts per call.
pub const MAX_ARTIFACTS: usize = 4;

/// A cell's declaration: its reason, inputs and artifacts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Contract {
    /// Description of the computation.
    pub operation: String,
    /// Reason why the computation needs code.
    pub reason: String,
    /// Tool results that it derives from; at least one, without duplicates.
    pub input_aliases: Vec<String>,
    /// Kinds of artifacts that it emits, without duplicates; empty for a computation alone.
    pub expected_artifacts: Vec<ArtifactKind>,
}

/// Kind of an artifact that a cell can emit in addition to its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArtifactKind {
    /// A picture, saved with `save_figure`.
    Image,
    /// A structured chart, emitted with `render_chart`.
    Chart,
}

impl ArtifactKind {
    /// Every kind.
    pub const ALL: [Self; 2] = [Self::Image, Self::Chart];

    /// Returns its name in a contract.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Chart => "chart",
        }
    }

    /// Returns the kind with this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the helper that emits it, with its arguments.
    pub const fn emitted_by(self) -> &'static str {
        match self {
            Self::Image => "save_figure(alt, title)",
            Self::Chart => "render_chart(spec, data, title)",
        }
    }
}

/// The existing tool results, in the order in which they were recorded.
#[derive(Clone, Debug, Default)]
pub struct KnownAliases {
    aliases: Vec<String>,
    set: BTreeSet<String>,
}

impl KnownAliases {
    /// Creates a list of aliases; duplicates count once.
    pub fn new<S: Into<String>>(aliases: impl IntoIterator<Item = S>) -> Self {
        let mut set = BTreeSet::new();
        let aliases = aliases
            .into_iter()
            .map(Into::into)
            .filter(|alias| set.insert(alias.clone()))
            .collect();
        Self { aliases, set }
    }

    /// Returns every alias.
    pub fn aliases(&self) -> &[String] {
        &self.aliases
    }

    /// Returns whether a result has this alias.
    pub fn contains(&self, alias: &str) -> bool {
        self.set.contains(alias)
    }

    /// Returns whether nothing was fetched so far.
    pub fn is_empty(&self) -> bool {
        self.aliases.is_empty()
    }
}

/// Requirements of a contract beyond its form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContractPolicy {
    /// Whether a call must give at least one of its inputs a local name. Otherwise `inputs` may be
    /// empty: every alias is bound anyway.
    pub require_inputs: bool,
    /// Maximum number of artifacts per call.
    pub max_artifacts: usize,
}

impl Default for ContractPolicy {
    fn default() -> Self {
        Self {
            require_inputs: false,
            max_artifacts: MAX_ARTIFACTS,
        }
    }
}
