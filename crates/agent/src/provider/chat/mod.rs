//! Chat Completions of any server that offers them: vLLM, Ollama, llama.cpp, OpenAI and others.

mod assemble;
mod body;
mod dialect;
mod estimate;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;

use super::http::ProviderEndpoint;
use super::reading::read;
use super::{ModelRequest, ModelStream, OwnModel, Provider, ProviderError};
use assemble::Assembler;
pub use dialect::{ChatDialect, MaxTokensField, SendReasoning, SystemRole};

/// A server's Chat Completions.
#[derive(Clone, Debug)]
pub struct ChatCompletions {
    endpoint: ProviderEndpoint,
    dialect: ChatDialect,
    /// Name of the server's field for reasoning.
    heard: Arc<OnceLock<&'static str>>,
}

impl ChatCompletions {
    /// Creates a client for the Chat Completions of an endpoint.
    pub fn new(endpoint: ProviderEndpoint) -> Self {
        Self {
            endpoint,
            dialect: ChatDialect::default(),
            heard: Arc::default(),
        }
    }

    /// Sets the server's differences.
    #[must_use]
    pub fn dialect(mut self, dialect: ChatDialect) -> Self {
        self.dialect = dialect;
        self
    }
}

/// Estimates the tokens of a request.
pub fn estimate(request: &ModelRequest) -> Result<u64, ProviderError> {
    let body = body::body(request, &ChatDialect::default(), None)?;
    Ok(estimate::estimate(&body))
}

impl Provider for ChatCompletions {
    fn stream(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ProviderError>> {
        Box::pin(async move {
            let reasoning = match self.dialect.send_reasoning {
                SendReasoning::Never => None,
                SendReasoning::Same => self.heard.get().copied(),
                SendReasoning::Reasoning => Some("reasoning"),
                SendReasoning::ReasoningContent => Some("reasoning_content"),
            };
            let body = body::body(&request, &self.dialect, reasoning)?;
            let body = self.endpoint.post("chat/completions", &body).await?;
            let assembler = Assembler::new(Arc::clone(&self.heard));
            Ok(read(self.endpoint.clone(), body, assembler))
        })
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<OwnModel>, ProviderError>> {
        Box::pin(self.endpoint.models())
    }
}
