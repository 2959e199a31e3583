//! Code in a container that derives from what tools gave, on its terms.

use cellblock_agent::turn::{self, Derivation, Ran, Terms};
use cellblock_agent::wire::{Output, Part};
use cellblock_interpreter::Error;
use cellblock_interpreter::derivation::Derived;
use cellblock_interpreter::output::Output as Shown;
use tokio_util::sync::CancellationToken;

use super::run::keep;
use crate::state::Gateway;
use crate::state::containers::HeldContainer;

/// Tokens that a model reads of a call.
const TOKENS: usize = 4000;

/// Runs it, unless its contract is refused. What it emitted counts only where it kept its contract.
pub(super) async fn derive(
    gateway: &Gateway,
    held: &HeldContainer,
    terms: Terms,
    stop: &CancellationToken,
) -> Result<Ran, Error> {
    let Terms {
        call,
        aliases,
        attempts,
        policy,
    } = terms;
    let interpreter = gateway.engine.interpreter();
    let interpreter = interpreter.map_err(|error| Error::Request(error.to_string()))?;
    let derivation = interpreter
        .derivation_in(held.session.clone(), aliases, policy, attempts)
        .await?;
    let running = derivation.derive(&call);
    let derived = held.session.until(stop.cancelled(), running).await;
    Ok(tell(gateway, held, derived?).await)
}

async fn tell(gateway: &Gateway, held: &HeldContainer, mut derived: Derived) -> Ran {
    let told = turn::Derived::of(&derived, TOKENS);
    let text = told.text.clone();
    let ran = match derived.execution.take() {
        None => Ran::refused(text.clone()),
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
    Ran {
        result: read(ran.result, text),
        outputs: ran.outputs,
        derivation: Some(Derivation {
            told,
            artifacts: derived.artifacts,
            result: derived.result,
        }),
        status: ran.status,
        made: ran.made,
    }
}

/// Returns what the model reads: the report of a derivation, and its pictures.
fn read(result: Output, text: String) -> Output {
    let pictures = match result {
        Output::Text(_) => Vec::new(),
        Output::Parts(parts) => parts,
    };
    let pictures = pictures
        .into_iter()
        .filter(|part| matches!(part, Part::InputImage { .. }));
    Output::Parts([Part::InputText { text }].into_iter().chain(pictures).collect())
}
