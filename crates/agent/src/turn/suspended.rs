//! Code that waits for the client between two responses.

use std::sync::Arc;

use cellblock_artifact::ArtifactEnvelope;
use parking_lot::Mutex;
use serde_json::Value;

use super::Turn;
use super::builder::ResponseBuilder;
use super::call_result::OutputFile;
use super::calls::StepCalls;
use crate::wire::FunctionOutput;

/// Code that waits until the client has answered its calls. Dropping it stops the code.
pub struct SuspendedCode {
    pub(super) serving: StepCalls,
    /// Files that were made and that no text has cited yet.
    made: Vec<OutputFile>,
    emitted: Vec<ArtifactEnvelope>,
    result: Option<Value>,
}

impl std::fmt::Debug for SuspendedCode {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SuspendedCode").finish_non_exhaustive()
    }
}

/// Slot from which a turn takes the code that it continues, and in which it leaves the code that it does not
/// wait for.
pub(super) type Suspension = Arc<Mutex<Option<SuspendedCode>>>;

impl SuspendedCode {
    pub(super) fn new(serving: StepCalls, telling: &mut ResponseBuilder<'_>) -> Self {
        Self {
            serving,
            made: std::mem::take(&mut telling.made),
            emitted: std::mem::take(&mut telling.emitted),
            result: telling.result.take(),
        }
    }

    /// Goes on in another turn.
    pub(super) fn into_serving(self, telling: &mut ResponseBuilder<'_>) -> StepCalls {
        telling.made = self.made;
        telling.emitted = self.emitted;
        telling.result = self.result;
        self.serving
    }

    /// Returns the ids of the calls that the client has to answer.
    pub fn waits_for(&self) -> Vec<String> {
        let open = self.serving.open.iter();
        open.filter_map(|(id, _)| id.clone()).collect()
    }

    /// Returns the ids of the model's calls of which it is the code, or that have no result for
    /// another reason.
    pub fn unanswered(&self) -> Vec<String> {
        self.serving.unanswered().map(str::to_owned).collect()
    }

    /// Answers the call with this id. Code that does not wait for it any more does not get it.
    pub fn answer(&mut self, call_id: &str, output: &FunctionOutput) {
        let open = &mut self.serving.open;
        if let Some(at) = open.iter().position(|(id, _)| id.as_deref() == Some(call_id)) {
            let (_, call) = open.swap_remove(at);
            let _ = call.answer.send(output.text());
        }
    }

    /// Lets the code come to its end without the client: its calls fail.
    pub async fn finish(self) {
        self.serving.finish().await;
    }
}

impl Turn {
    /// Goes on with code of an earlier turn, whose calls have been answered.
    #[must_use]
    pub fn resuming(mut self, code: SuspendedCode) -> Self {
        self.suspension = Arc::new(Mutex::new(Some(code)));
        self
    }

    /// Returns the code that waits for the client, after the turn.
    pub fn suspended(&self) -> Option<SuspendedCode> {
        self.suspension.lock().take()
    }

    pub(super) fn suspend(&self, code: SuspendedCode) {
        *self.suspension.lock() = Some(code);
    }
}
