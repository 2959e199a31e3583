//! Calls of toolsets: code, charts, and tools that a request names are all run this way.

use std::sync::Arc;

use cellblock_interpreter::connector::Connector;
use cellblock_interpreter::error::Result;
use cellblock_interpreter::toolset::python::{self, RUN_PYTHON};
use cellblock_interpreter::toolset::{ToolResult, ToolsetKind, ToolsetTerms, Watch};
use cellblock_interpreter::{Interpreter, Session};
use serde_json::{Value, json};

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
