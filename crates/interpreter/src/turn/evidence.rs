//! Tools of the host, and where their results are kept.

use std::collections::BTreeMap;

use serde_json::Value;

use super::ToolDefinition;
use crate::alias::AliasStore;

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

impl Evidence for AliasStore {
    async fn record(&mut self, tool: &str, output: &Value) -> Result<String, ToolError> {
        let recorded = Self::record(self, tool, output).await;
        let entry = recorded.map_err(|error| ToolError(error.to_string()))?;
        Ok(entry.alias.clone())
    }

    fn views(&self, tokens: usize) -> BTreeMap<String, String> {
        let views = self.model_views(tokens).into_iter();
        views.map(|view| (view.alias, view.text)).collect()
    }
}

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
