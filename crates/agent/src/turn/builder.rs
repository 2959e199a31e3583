//! The response of a turn while it is made.

use std::sync::Arc;
use std::time::Duration;

use cellblock_artifact::ArtifactEnvelope;
use cellblock_interpreter::connector::Connector;
use cellblock_interpreter::contract::Attempts;
use cellblock_interpreter::render;
use cellblock_interpreter::toolset::WriteTerms;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::mpsc;

use super::call_result::{CallResult, OutputFile, TOKENS};
use super::deferral::DeferredTools;
use super::derived::DerivationOutcome;
use super::functions::{CodeFunction, Functions};
use super::program_seal::ProgramSeal;
use super::progress::Progress;
use super::research::Research;
use super::runner::Runner;
use crate::provider::ProviderError;
use crate::tools::Catalog;
use crate::wire::{ApiError, Draft, FunctionOutput, Ids, Item, ItemStatus, McpError, McpSlot, StreamEvent};

/// Response under construction, and its receiver.
pub(super) struct ResponseBuilder<'a> {
    pub(super) draft: Draft,
    pub(super) events: mpsc::Sender<StreamEvent>,
    pub(super) ids: Ids,
    pub(super) runner: Arc<dyn Runner>,
    /// Whether the request permits code.
    pub(super) code: bool,
    /// Whether it permits commands of a shell in a container.
    pub(super) shell: bool,
    /// Seals the starts of programs.
    pub(super) program_seal: Arc<dyn ProgramSeal>,
    /// Maximum time of a command, and of a run of a program.
    pub(super) max_timeout: Duration,
    /// Terms of the calls that need approval, of code that the model writes.
    pub(super) writes: WriteTerms,
    pub(super) functions: Functions,
    /// Those that code may call.
    pub(super) of_code: Arc<[CodeFunction]>,
    /// Connectors that the request lends to its code.
    pub(super) lent: &'a [Arc<dyn Connector>],
    /// Whether outputs of code are sent to the client.
    pub(super) outputs: bool,
    /// Files that code made and that no text has cited yet.
    pub(super) made: Vec<OutputFile>,
    /// Tools of servers.
    pub(super) catalog: Catalog,
    /// Deferred tools, and those of them that are loaded.
    pub(super) deferral: DeferredTools,
    /// Fetching and deriving, if the turn does any.
    pub(super) research: Option<&'a Research>,
    pub(super) progress: Progress,
    /// Number of derivations that may still fail.
    pub(super) attempts: Arc<Mutex<Attempts>>,
    /// Artifacts that derivations emitted, and the result of the last one.
    pub(super) emitted: Vec<ArtifactEnvelope>,
    pub(super) result: Option<Value>,
    /// Requests for approval of rehearsed code, which the conversation does not have yet.
    pub(super) asked: Vec<Item>,
}

/// The reason why a step did not end.
#[derive(Debug)]
pub(super) enum Stop {
    /// The client is gone.
    Gone,
    /// The server is stopping.
    Ending,
    /// The provider failed.
    Failed(ProviderError),
    /// A summary could not be sealed.
    Unsealed(ApiError),
}

impl From<ProviderError> for Stop {
    fn from(error: ProviderError) -> Self {
        Self::Failed(error)
    }
}

impl ResponseBuilder<'_> {
    /// Sends pending events. Waits for a client that reads slowly, so that nothing piles up.
    pub(super) async fn flush(&mut self) -> Result<(), Stop> {
        for event in self.draft.take() {
            self.events.send(event).await.map_err(|_| Stop::Gone)?;
        }
        Ok(())
    }

    /// Ends a call of a toolset that the request names, and returns the result for the model.
    pub(super) fn end_call(&mut self, slot: McpSlot, ran: CallResult) -> FunctionOutput {
        let text = ran.result.text();
        self.draft.report_call(&slot, ran.report());
        let came = match ran.status {
            ItemStatus::Failed => Err(McpError::execution(text)),
            _ => Ok(text),
        };
        self.draft.end_mcp_call(slot, came);
        self.keep(ran.made, ran.derivation);
        match ran.result {
            FunctionOutput::Text(text) => FunctionOutput::Text(render::stream(&text, TOKENS)),
            parts @ FunctionOutput::Parts(_) => parts,
        }
    }

    /// Keeps what a call made, for the answer.
    pub(super) fn keep(&mut self, made: Vec<OutputFile>, derivation: Option<DerivationOutcome>) {
        for file in made {
            // If a file is written again, texts refer to the new one.
            let same = |other: &OutputFile| other.container == file.container && other.path == file.path;
            self.made.retain(|other| !same(other));
            self.made.push(file);
        }
        if let Some(derivation) = derivation {
            self.progress.attempted(&derivation.told);
            self.progress.derived(&derivation.told);
            self.emitted.extend(derivation.artifacts);
            self.result = derivation.result.or(self.result.take());
        }
    }
}
