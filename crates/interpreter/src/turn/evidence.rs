//! Tools of the host, and where their results are kept.

use std::collections::BTreeMap;

use serde_json::Value;

use super::ToolDefinition;

/// The host's tools, which fetch data. They never run in a sandbox.
pub trait Tools: Send {
    /// What is offered. Names that belong to the toolset are left out.
    fn definitions(&self) -> Vec<ToolDefinition>;

    /// Calls one of them.
    fn call(
        &mut self,
        name: &str,
        arguments: &Value,
    ) -> impl Future<Output = Result<Value, ToolError>> + Send;
}

/// Why a tool gave no result, in words for the model.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(pub String);

/// Where whole results are kept, whatever a model rereads of them.
pub trait Evidence: Send {
    /// Keeps a result and names it.
    fn record(
        &mut self,
        tool: &str,
        output: &Value,
    ) -> impl Future<Output = Result<String, ToolError>> + Send;

    /// What a model rereads: each alias with its view, all within so many tokens as far as the bare names allow.
    fn views(&self, tokens: usize) -> BTreeMap<String, String>;
}
