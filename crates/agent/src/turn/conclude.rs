//! The conclusion of a turn that had tools for fetching: its gaps, its artifacts, and its data.

use std::error::Error;

use cellblock_artifact::ArtifactEnvelope;
use cellblock_interpreter::alias::CanonicalDataset;
use serde_json::{Value, json};

use super::StepsEnd;
use super::builder::{ResponseBuilder, Stop};
use super::derived::AnswerArtifact;
use super::outcome::TurnOutcome;
use super::progress::TurnEnd;
use super::research::Research;
use crate::wire::{COMMANDS, Item, ItemStatus, Message, Part, ReportedGap, Role, TurnReport};

impl ResponseBuilder<'_> {
    /// Reports the turn's outcome. A turn that ended without an answer reports that, with the
    /// available data.
    pub(super) async fn conclude(&mut self, ended: &Result<StepsEnd, Stop>, conversation: &mut Vec<Item>) {
        let Some(research) = self.research.filter(|research| !research.is_plain()) else {
            return;
        };
        let ending = match ended {
            Ok(StepsEnd::Answer(text)) => TurnEnd::Answer(text.clone()),
            Ok(StepsEnd::Steps) => TurnEnd::Steps,
            Ok(StepsEnd::Attempts) => TurnEnd::Attempts,
            Err(Stop::Failed(error)) => TurnEnd::Model(error.to_string()),
            // The client continues, or its own limits ended the answer, or the client is gone.
            Ok(StepsEnd::Client | StepsEnd::Cut(_)) | Err(Stop::Gone | Stop::Ending | Stop::Unsealed(_)) => {
                return;
            }
        };
        let progress = std::mem::take(&mut self.progress);
        let Some(outcome) = progress.conclude(ending, research.evidence.aliases()) else {
            return;
        };
        // A client of the Messages API lets the model go on.
        let pauses = research.sources.iter().any(|source| source.label == COMMANDS);
        if matches!(ended, Ok(StepsEnd::Steps | StepsEnd::Attempts)) && !pauses {
            self.say(&outcome.text, conversation);
        }
        let report = TurnReport {
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
        // A disconnected client is noticed when the last event is sent.
        let _ = self.flush().await;
    }

    /// Sends a text that the model did not write, and adds it to the conversation.
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

/// Builds one document with all fetched data and the last result. A failure does not affect the
/// answer.
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

/// Returns the artifacts of the answer.
fn artifacts(of_answer: &[AnswerArtifact], emitted: &[ArtifactEnvelope]) -> Vec<Value> {
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

/// Returns the serialized name of a variant.
fn word(variant: &impl serde::Serialize) -> String {
    json!(variant).as_str().unwrap_or_default().to_owned()
}
