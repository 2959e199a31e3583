//! Turns with a scripted model.

use serde_json::json;

use super::*;

mod budget;
mod disposal;
mod fakes;
mod steps;

use fakes::{Act, Counting, Host, Ledger, Script};

fn turn(chart_intent: ChartIntent) -> Turn {
    Turn {
        request: "how did the reserves change?".to_owned(),
        plan: Plan { chart_intent },
        ..Turn::default()
    }
}

/// Runs a turn; what the model saw is in the script, what the deriver was asked in its clone.
async fn run(turn: &Turn, script: &mut Script, deriver: &Counting) -> Result<TurnOutcome, TurnError> {
    turn.run(script, &mut Host, deriver.clone(), &mut Ledger::default())
        .await
}

fn codes(outcome: &TurnOutcome) -> Vec<&str> {
    outcome.gaps.iter().map(|gap| gap.code.as_str()).collect()
}

/// Texts of the results that the model saw at its last step.
fn results(script: &Script) -> Vec<&str> {
    let entries = &script.seen.last().unwrap().entries;
    let texts = entries.iter().filter_map(|entry| match entry {
        Entry::Result { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}
