//! The contract of a derivation cell: what it declares before it runs, and what it has to have emitted when it ended.
//!
//! ```text
//! arguments ─DerivationCall::read─> call ─check_before─> Contract ─(Python)─> emitted ─check_after─> accepted
//!      └────────── Rejection ──────────┴───── Rejection ────┘                        └── Rejection
//! ```
//!
//! Nothing here starts a sandbox. All problems of a call are told at once, in the order of its fields, as [`Rejection`]s that a model can
//! act on: what is wrong, what was given, what is valid, what to do. [`CODES`] lists every code; [`Attempts`] bounds how often a model may
//! try.
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
pub use before::{Call, check_before};
pub use call::DerivationCall;
pub use codes::{ATTEMPTS_EXHAUSTED, CODES, Code, Stage};
pub(crate) use fields::{required, text, wrong_type};
pub(crate) use found::Found;
pub use names::{HELPERS, PRELUDE, Reserved, is_identifier, reserved};
pub(crate) use wording::{plain, quote, unknown_alias};

/// Artifacts that one call may emit, unless a policy says otherwise.
pub const MAX_ARTIFACTS: usize = 4;

/// What a cell declares: why it runs, on what, and what comes of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Contract {
    /// What is computed.
    pub operation: String,
    /// Why it takes code to compute it.
    pub reason: String,
    /// The tool results that it derives from; at least one, each once.
    pub input_aliases: Vec<String>,
    /// Which kinds of artifacts it emits, each once; none for a computation alone.
    pub expected_artifacts: Vec<ArtifactKind>,
}

/// What a cell can emit besides its result.
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

    /// Its name in a contract.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Chart => "chart",
        }
    }

    /// The kind of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The helper that emits it, with its arguments.
    pub const fn emitted_by(self) -> &'static str {
        match self {
            Self::Image => "save_figure(alt, title)",
            Self::Chart => "render_chart(spec, data, title)",
        }
    }
}

/// The tool results that there are, in the order in which they were recorded.
#[derive(Clone, Debug, Default)]
pub struct Known {
    aliases: Vec<String>,
    set: BTreeSet<String>,
}

impl Known {
    /// These aliases; one that is repeated counts once.
    pub fn new<S: Into<String>>(aliases: impl IntoIterator<Item = S>) -> Self {
        let mut set = BTreeSet::new();
        let aliases = aliases
            .into_iter()
            .map(Into::into)
            .filter(|alias| set.insert(alias.clone()))
            .collect();
        Self { aliases, set }
    }

    /// Every alias.
    pub fn aliases(&self) -> &[String] {
        &self.aliases
    }

    /// Whether there is a result of this alias.
    pub fn contains(&self, alias: &str) -> bool {
        self.set.contains(alias)
    }

    /// Whether nothing was fetched so far.
    pub fn is_empty(&self) -> bool {
        self.aliases.is_empty()
    }
}

/// What a contract has to meet beyond its form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContractPolicy {
    /// Whether a call has to give at least one of its inputs a local name. Otherwise `inputs` may be empty: every alias is bound anyway.
    pub require_inputs: bool,
    /// The most artifacts that one call may emit.
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
