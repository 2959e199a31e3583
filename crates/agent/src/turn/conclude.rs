//! What a turn that had tools to fetch with came to: its gaps, its artifacts, and the data behind it.

use std::error::Error;

use cellblock_artifact::ArtifactEnvelope;
use cellblock_interpreter::alias::CanonicalDataset;
use serde_json::{Value, json};

use super::derived::Emitted;
use super::outcome::TurnOutcome;
use super::progress::Ending;
use super::research::Research;
use super::step::Stop;
use super::{End, Telling};
use crate::wire::{Item, ItemStatus, Message, Part, Report, ReportedGap, Role};

impl Telling<'_> {
    /// Reports what came of the turn. One that ended without an answer says so, and says what there is.
    pub(super) async fn conclude(&mut self, ended: &Result<End, Stop>, conversation: &mut Vec<Item>) {
        let Some(research) = self.research else { return };
        let ending = match ended {
            Ok(End::Answer(text)) => Ending::Answer(text.clone()),
            Ok(End::Steps) => Ending::Steps,
            Ok(End::Attempts) => Ending::Attempts,
            Err(Stop::Failed(error)) => Ending::Model(error.to_string()),
            // The client goes on, or its own bounds ended the answer, or nobody reads it.
            Ok(End::Client | End::Cut(_)) | Err(Stop::Gone | Stop::Ending) => return,
        };
        let progress = std::mem::take(&mut self.progress);
        let Some(outcome) = progress.conclude(ending, research.evidence.aliases()) else {
            return;
        };
        if matches!(ended, Ok(End::Steps | End::Attempts)) {
            self.say(&outcome.text, conversation);
        }
        let report = Report {
            dataset: dataset(research, self.result.as_ref()).await,
            artifacts: artifacts(&outcome.artifacts, &self.emitted),
            outcome: word(&outcome.outcome),
            stop_reason: word(&outcome.stop_reason),
            gaps: gaps(&outcome),
            artifacts_left_out: outcome.artifacts_left_out,
            steps_used: outcome.steps_used,
            derivations: outcome.derivations,
        };
        self.draft.report(report);
        // Whoever does not read any more is found out when the last event is sent.
        let _ = self.flush().await;
    }

    /// Says something that the model did not, and remembers it as said.
    fn say(&mut self, text: &str, conversation: &mut Vec<Item>) {
        let id = self.ids.mint("msg");
        let slot = self.draft.message(id.clone());
        self.draft.text(&slot, text);
        self.draft.end_message(slot);
        conversation.push(Item::Message(Message {
            id,
            status: ItemStatus::Completed,
            role: Role::Assistant,
            content: vec![Part::output_text(text)],
            phase: None,
        }));
    }
}

/// All that was fetched and the last result, in one document. Without it the answer still stands.
async fn dataset(research: &Research, result: Option<&Value>) -> Option<CanonicalDataset> {
    let aliases = research.evidence.aliases();
    let names = aliases.aliases();
    if names.is_empty() {
        return None;
    }
    let made = aliases.canonical_dataset(&names, result, &research.urls).await;
    made.inspect_err(|error| tracing::error!(error = error as &dyn Error, "keep the data behind an answer"))
        .ok()
}

/// The artifacts of the answer, whole.
fn artifacts(of_answer: &[Emitted], emitted: &[ArtifactEnvelope]) -> Vec<Value> {
    let whole = of_answer.iter().filter_map(|one| {
        emitted
            .iter()
            .rev()
            .find(|artifact| artifact.id().to_string() == one.sha256)
    });
    whole.map(|artifact| json!(artifact)).collect()
}

fn gaps(outcome: &TurnOutcome) -> Vec<ReportedGap> {
    let gaps = outcome.gaps.iter().map(|gap| ReportedGap {
        code: gap.code.clone(),
        message: gap.message.clone(),
    });
    gaps.collect()
}

/// A variant as it is written.
fn word(variant: &impl serde::Serialize) -> String {
    json!(variant).as_str().unwrap_or_default().to_owned()
}
