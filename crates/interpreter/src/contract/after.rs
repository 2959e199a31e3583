//! Compares a cell's emitted artifacts with its declaration.

use std::collections::BTreeSet;

use cellblock_protocol::text::counted;

use super::codes::{ARTIFACT_NOT_DECLARED, ARTIFACT_NOT_EMITTED, TOO_MANY_ARTIFACTS, WRONG_ARTIFACT_KIND};
use super::wording::and;
use super::{ArtifactKind, Contract};
use crate::rejection::Rejection;

const FIELD: &str = "expectedArtifacts";

/// Returns all violations of a completed cell; empty if it kept its contract.
///
/// `drawn_unsaved` is the number of figures that were drawn but not saved, `most` the maximum
/// number of artifacts per call.
pub fn check_after(
    contract: &Contract,
    emitted: &[ArtifactKind],
    drawn_unsaved: usize,
    most: usize,
) -> Vec<Rejection> {
    let declared: BTreeSet<_> = contract.expected_artifacts.iter().copied().collect();
    let made: BTreeSet<_> = emitted.iter().copied().collect();
    let missing: Vec<_> = declared.difference(&made).copied().collect();
    let extra: Vec<_> = made.difference(&declared).copied().collect();
    let mut found = match (missing.is_empty(), extra.is_empty()) {
        (true, true) => Vec::new(),
        (false, true) => vec![not_emitted(&missing, &made, drawn_unsaved)],
        (true, false) => vec![not_declared(&extra, &declared)],
        (false, false) => vec![wrong_kind(&missing, &extra, drawn_unsaved)],
    };
    if emitted.len() > most {
        found.push(too_many(emitted.len(), most));
    }
    found
}

fn not_emitted(missing: &[ArtifactKind], made: &BTreeSet<ArtifactKind>, drawn_unsaved: usize) -> Rejection {
    let only = if made.is_empty() {
        "emitted none".to_owned()
    } else {
        format!("only emitted {}", names(made.iter().copied()))
    };
    let message = format!(
        "the contract expects {}, but the cell {only}; {}, then call again, or take it out of `{FIELD}`",
        names(missing.iter().copied()),
        how_to_emit(missing, drawn_unsaved)
    );
    rejection(ARTIFACT_NOT_EMITTED, message, made.iter().copied())
}

fn not_declared(extra: &[ArtifactKind], declared: &BTreeSet<ArtifactKind>) -> Rejection {
    let expects = if declared.is_empty() {
        "expects no artifact".to_owned()
    } else {
        format!("only expects {}", names(declared.iter().copied()))
    };
    let calls: Vec<_> = extra.iter().map(|kind| kind.emitted_by()).collect();
    let message = format!(
        "the cell emitted {}, but the contract {expects}; declare it in `{FIELD}`, or leave out the call \
         of {}",
        names(extra.iter().copied()),
        and(&calls)
    );
    let all = declared.iter().chain(extra).copied();
    rejection(ARTIFACT_NOT_DECLARED, message, all)
}

fn wrong_kind(missing: &[ArtifactKind], extra: &[ArtifactKind], drawn_unsaved: usize) -> Rejection {
    let message = format!(
        "the contract expects {}, but the cell emitted {}; {}, or declare {} in `{FIELD}`, then call again",
        names(missing.iter().copied()),
        names(extra.iter().copied()),
        how_to_emit(missing, drawn_unsaved),
        names(extra.iter().copied()),
    );
    rejection(WRONG_ARTIFACT_KIND, message, extra.iter().copied())
}

fn too_many(emitted: usize, most: usize) -> Rejection {
    let message = format!(
        "the cell emitted {emitted} artifacts, the limit is {most}; emit the most telling ones, or draw \
         several panels in one figure"
    );
    rejection(TOO_MANY_ARTIFACTS, message, [])
}

fn how_to_emit(missing: &[ArtifactKind], drawn_unsaved: usize) -> String {
    let calls: Vec<_> = missing.iter().map(|kind| kind.emitted_by()).collect();
    let call = format!("call {} before the cell ends", and(&calls));
    match drawn_unsaved {
        1.. if missing.contains(&ArtifactKind::Image) => {
            format!("{} drawn but not saved: {call}", was(drawn_unsaved))
        }
        _ => call,
    }
}

fn was(figures: usize) -> String {
    let verb = if figures == 1 { "was" } else { "were" };
    format!("{} {verb}", counted(figures, "figure"))
}

fn names(kinds: impl IntoIterator<Item = ArtifactKind>) -> String {
    let names: Vec<_> = kinds.into_iter().map(ArtifactKind::name).collect();
    and(&names)
}

/// `valid` are the kinds with which the declaration would have been correct.
fn rejection(code: &str, message: String, valid: impl IntoIterator<Item = ArtifactKind>) -> Rejection {
    Rejection::of_field(code, FIELD, message).with_valid(valid.into_iter().map(ArtifactKind::name))
}
