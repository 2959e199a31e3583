//! What a turn has to know of a derivation.

use cellblock_interpreter::contract::ArtifactKind;
use cellblock_interpreter::derivation;
use cellblock_interpreter::execution::Rejection;
use serde::Serialize;

/// What came of a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Derived {
    /// Whether it ran to its end and kept its contract.
    pub ok: bool,
    /// What was wrong with it.
    pub rejections: Vec<Rejection>,
    /// Why it is not ok, in a line: what was wrong, or the exception.
    pub failure: Option<String>,
    /// Attempts that are left after it.
    pub attempts_left: u32,
    /// What it emitted; only what is part of the answer, so nothing unless `ok`.
    pub artifacts: Vec<Emitted>,
    /// What the model reads: outputs, mistakes, attempts left.
    pub text: String,
}

/// An artifact that belongs to the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Emitted {
    /// What it is.
    pub kind: ArtifactKind,
    /// The sha256 of its bytes, under which it is stored.
    pub sha256: String,
}

impl Derived {
    /// Takes over a derivation whose text may have `tokens` tokens.
    pub fn of(derived: &derivation::Derived, tokens: usize) -> Self {
        let artifacts = derived.artifacts.iter().filter_map(|artifact| {
            Some(Emitted {
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
