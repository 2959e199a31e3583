//! Results of derivations, and the facts that a turn needs about them.

use cellblock_artifact::ArtifactEnvelope;
use cellblock_interpreter::contract::ArtifactKind;
use cellblock_interpreter::derivation;
use cellblock_interpreter::execution::Rejection;
use serde::Serialize;
use serde_json::Value;

/// Result of a call that derived.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DerivedFacts {
    /// Whether it completed and kept its contract.
    pub ok: bool,
    /// Violations of the contract.
    pub rejections: Vec<Rejection>,
    /// The failure in one line: the violation, or the exception.
    pub failure: Option<String>,
    /// Number of attempts left after it.
    pub attempts_left: u32,
    /// Artifacts of the answer, so empty unless `ok`.
    pub artifacts: Vec<AnswerArtifact>,
    /// Text for the model: outputs, mistakes, attempts left.
    pub text: String,
}

/// An artifact that belongs to the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AnswerArtifact {
    /// Kind of the artifact.
    pub kind: ArtifactKind,
    /// The sha256 of its bytes, under which it is stored.
    pub sha256: String,
}

impl DerivedFacts {
    /// Converts a derivation whose text may have `tokens` tokens.
    pub fn of(derived: &derivation::DerivationResult, tokens: usize) -> Self {
        let artifacts = derived.artifacts.iter().filter_map(|artifact| {
            Some(AnswerArtifact {
                kind: ArtifactKind::of_name(artifact.kind())?,
                sha256: artifact.id().to_string(),
            })
        });
        Self {
            ok: derived.ok(),
            rejections: derived.rejections().to_vec(),
            failure: derived.failure().map(|(what, _)| what),
            attempts_left: derived.attempts_left,
            artifacts: artifacts.collect(),
            text: derived.for_model(tokens),
        }
    }
}

/// Result of code that derived.
#[derive(Clone, Debug, PartialEq)]
pub struct DerivationOutcome {
    /// The facts that a turn needs.
    pub told: DerivedFacts,
    /// Emitted artifacts.
    pub artifacts: Vec<ArtifactEnvelope>,
    /// Result of the code.
    pub result: Option<Value>,
}

impl DerivationOutcome {
    /// Takes the facts from the result of a call; its text may have `tokens` tokens.
    pub fn of(derived: &mut derivation::DerivationResult, tokens: usize) -> Self {
        Self {
            told: DerivedFacts::of(derived, tokens),
            artifacts: std::mem::take(&mut derived.artifacts),
            result: derived.result.take(),
        }
    }
}
