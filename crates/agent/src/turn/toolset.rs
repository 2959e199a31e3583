//! Calls of toolsets: code, charts, and tools that a request names are all run this way.

use std::sync::Arc;

use cellblock_interpreter::connector::Connector;
use cellblock_interpreter::error::Result;
use cellblock_interpreter::render;
use cellblock_interpreter::toolset::python::{self, RUN_PYTHON};
use cellblock_interpreter::toolset::{ToolResult, ToolsetKind, ToolsetTerms, Watch};
use cellblock_interpreter::{Interpreter, Session};
use serde_json::{Value, json};

use super::runner::CallResult;
use super::session::TOKENS;
use super::{DerivationOutcome, ResponseBuilder};
use crate::wire::{CallReport, FunctionOutput, ItemStatus, McpError, McpSlot};

/// A call of a toolset's tool.
#[derive(Clone, Debug)]
pub struct ToolsetCall {
    /// The toolset.
    pub kind: ToolsetKind,
    /// Name of the tool.
    pub tool: String,
    /// Arguments of the call.
    pub arguments: Value,
    /// Terms of the toolset.
    pub terms: ToolsetTerms,
    /// Connectors that its code may call in addition to those of the session.
    pub lent: Vec<Arc<dyn Connector>>,
}

impl ToolsetCall {
    /// Creates the call that runs a cell of Python.
    pub fn cell(code: impl Into<String>, requirements: &[String]) -> Self {
        Self {
            kind: python::KIND,
            tool: RUN_PYTHON.to_owned(),
            arguments: json!({"code": code.into(), "requirements": requirements}),
            terms: ToolsetTerms::default(),
            lent: Vec::new(),
        }
    }

    /// Returns its code, if it runs any.
    pub fn code(&self) -> &str {
        self.arguments["code"].as_str().unwrap_or_default()
    }

    /// Returns the packages that its code needs.
    pub fn requirements(&self) -> Vec<String> {
        serde_json::from_value(self.arguments["requirements"].clone()).unwrap_or_default()
    }

    /// Opens the toolset over a session, and calls it.
    pub async fn over(
        self,
        interpreter: &Interpreter,
        session: Session,
        watch: Watch<'_>,
    ) -> Result<ToolResult> {
        // Other tools can be called while code is about to run.
        if self.kind.runs_cells() {
            session.lend(self.lent).await?;
        }
        let toolset = (self.kind.open)(interpreter, session, &self.terms).await?;
        let result = toolset.call(&self.tool, self.arguments, watch).await;
        // Results that are lent outlive the call.
        if self.terms.results.is_none() {
            toolset.close().await?;
        }
        result
    }
}

impl CallResult {
    /// Returns a tool's result that is JSON.
    pub fn json(result: &Value) -> Self {
        Self {
            status: if result["success"] == false {
                ItemStatus::Failed
            } else {
                ItemStatus::Completed
            },
            outputs: Vec::new(),
            result: FunctionOutput::Text(result.to_string()),
            made: Vec::new(),
            derivation: None,
            report: CallReport::default(),
        }
    }
}

impl ResponseBuilder<'_> {
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
    pub(super) fn keep(&mut self, made: Vec<super::OutputFile>, derivation: Option<DerivationOutcome>) {
        for file in made {
            // If a file is written again, texts refer to the new one.
            let same =
                |other: &super::OutputFile| other.container == file.container && other.path == file.path;
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
