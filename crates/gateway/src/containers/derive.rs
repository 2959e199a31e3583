//! Content that a client and a model receive of code in a container that derived.

use cellblock_agent::turn::{CallResult, DerivationOutcome};
use cellblock_agent::wire::{FunctionOutput, Part};
use cellblock_interpreter::derivation::DerivationResult;
use cellblock_interpreter::output::Output as Shown;

use super::run::keep;
use crate::state::Gateway;
use crate::state::containers::HeldContainer;

/// Tokens that a model reads of a call.
const TOKENS: usize = 4000;

/// Reports derived code; what it emitted counts only if it kept its contract.
pub(super) async fn tell(
    gateway: &Gateway,
    held: &HeldContainer,
    mut derived: DerivationResult,
) -> CallResult {
    let derivation = DerivationOutcome::of(&mut derived, TOKENS);
    let text = derivation.told.text.clone();
    let ran = match derived.execution.take() {
        None => CallResult::refused(text.clone()),
        Some(mut execution) => {
            if !derived.ok() {
                // Nobody is to take for an answer what is none.
                execution.files.clear();
                execution
                    .outputs
                    .retain(|output| !matches!(output, Shown::Figure(_) | Shown::Image(_) | Shown::Chart(_)));
            }
            keep(gateway, held, &mut execution).await
        }
    };
    CallResult {
        result: read(ran.result, text),
        outputs: ran.outputs,
        derivation: Some(derivation),
        status: ran.status,
        made: ran.made,
        report: ran.report,
        asks: None,
    }
}

/// Returns what the model reads: the report of a derivation, and its pictures.
fn read(result: FunctionOutput, text: String) -> FunctionOutput {
    let pictures = match result {
        FunctionOutput::Text(_) => Vec::new(),
        FunctionOutput::Parts(parts) => parts,
    };
    let pictures = pictures
        .into_iter()
        .filter(|part| matches!(part, Part::InputImage { .. }));
    FunctionOutput::Parts([Part::InputText { text }].into_iter().chain(pictures).collect())
}
