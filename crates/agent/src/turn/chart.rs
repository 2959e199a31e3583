//! Charts that a model draws from one result, without code or a sandbox.

use std::sync::Arc;

use cellblock_interpreter::Interpreter;
use cellblock_interpreter::derivation::tools::RENDER_CHART;
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::toolset::ToolResult;
use cellblock_interpreter::toolset::patch::PATCH;

use super::builder::ResponseBuilder;
use super::derived::DerivationOutcome;
use super::toolset::ToolsetCall;
use crate::tools::OWN;
use crate::wire::{FunctionOutput, McpCall, McpError, McpSlot};

/// Maximum number of tokens in the model's result of a drawn chart.
const TOKENS: usize = 1000;

impl McpCall {
    /// Returns whether a tool of this server ran, such as the one that draws charts, and so fetched nothing.
    pub fn is_own(&self) -> bool {
        self.server_label == OWN && [RENDER_CHART, PATCH].contains(&self.name.as_str())
    }
}

/// A requested chart.
pub(super) struct ChartRequest {
    interpreter: Arc<Interpreter>,
    call: ToolsetCall,
}

/// Result of drawing; nothing if the host itself failed.
pub(super) type ChartOutcome = Option<DerivationOutcome>;

impl ChartRequest {
    /// Draws the chart. An invalid chart counts as a failed attempt.
    pub(super) async fn run(self) -> ChartOutcome {
        // A session without cells has no sandbox and costs nothing.
        let session = self.interpreter.session(SessionOptions::default());
        match self.call.over(&self.interpreter, session, &mut |_| {}).await {
            Ok(ToolResult::Derived(mut drawn)) => Some(DerivationOutcome::of(&mut drawn, TOKENS)),
            Ok(_) => None,
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "a chart could not be drawn"
                );
                None
            }
        }
    }
}

impl ResponseBuilder<'_> {
    /// Returns whether the model may draw charts.
    pub(super) fn draws(&self) -> bool {
        let own = self.functions.find(RENDER_CHART).is_some();
        !own && self.research.is_some_and(|research| research.deriving.is_some())
    }

    /// Reads a chart from the arguments of its call.
    pub(super) fn drawing(&self, arguments: &str) -> Result<ChartRequest, McpError> {
        let deriving = self.research.and_then(|it| Some((it, it.deriving.as_ref()?)));
        let (research, deriving) = deriving.ok_or_else(|| McpError::protocol("no charts are drawn here"))?;
        // Arguments that are not JSON are rejected as text.
        let arguments = serde_json::from_str(arguments).unwrap_or_else(|_| arguments.into());
        Ok(ChartRequest {
            interpreter: Arc::clone(&deriving.interpreter),
            call: deriving.call(RENDER_CHART, arguments, &research.evidence, &self.attempts),
        })
    }

    /// Ends a chart's call, and returns the result for the model.
    pub(super) fn end_drawing(&mut self, slot: McpSlot, drawn: ChartOutcome) -> FunctionOutput {
        let Some(derivation) = drawn else {
            self.progress.broke();
            return self.failed(
                slot,
                McpError::protocol(
                    "the chart could not be drawn because of an internal error; continue without it",
                ),
            );
        };
        self.progress.derived(&derivation.told);
        self.emitted.extend(derivation.artifacts);
        let text = derivation.told.text;
        let came = if derivation.told.ok {
            Ok(text.clone())
        } else {
            Err(McpError::execution(text.clone()))
        };
        self.draft.end_mcp_call(slot, came);
        FunctionOutput::Text(text)
    }
}
