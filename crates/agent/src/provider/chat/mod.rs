//! Chat Completions of any server that offers them: vLLM, Ollama, llama.cpp, OpenAI and others.

mod assemble;
mod body;
mod estimate;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;

use super::http::Endpoint;
use super::reading::read;
use super::{ModelRequest, ModelStream, OwnModel, Provider, ProviderError};
use assemble::Assembler;

/// A server's Chat Completions.
#[derive(Clone, Debug)]
pub struct ChatCompletions {
    endpoint: Endpoint,
    dialect: Dialect,
    /// Name of the server's field for reasoning.
    heard: Arc<OnceLock<&'static str>>,
}

/// Differences between servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// Field for the maximum number of tokens: `max_tokens`, or `max_completion_tokens` for newer
    /// models of OpenAI.
    pub max_tokens_field: String,
    /// Role of the application: `system` or `developer`.
    pub system_role: String,
    /// Whether, and in which field, reasoning is sent back to models that need it between their
    /// calls.
    pub reasoning: ReasoningBack,
    /// Whether usage is requested from the server, which some servers reject.
    pub stream_usage: bool,
    /// Whether the server knows the field `parallel_tool_calls`; it is sent only if a request
    /// forbids such calls.
    pub parallel_tool_calls: bool,
    /// Whether the server knows `strict` in a function; it is sent only if a request requires it.
    pub strict: bool,
}

/// Whether, and in which field, reasoning is sent back. Off by default, because some templates
/// reject it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ReasoningBack {
    /// Not sent back.
    #[default]
    Never,
    /// Sent back in the field in which the server sent it.
    Same,
    /// Sent back in this field.
    Field(String),
}

impl Default for Dialect {
    fn default() -> Self {
        Self {
            max_tokens_field: "max_tokens".to_owned(),
            system_role: "system".to_owned(),
            reasoning: ReasoningBack::Never,
            stream_usage: true,
            parallel_tool_calls: true,
            strict: true,
        }
    }
}

impl ChatCompletions {
    /// Creates a client for the Chat Completions of an endpoint.
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            dialect: Dialect::default(),
            heard: Arc::default(),
        }
    }

    /// Sets the server's differences.
    #[must_use]
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }
}

/// Estimates the tokens of a request.
pub fn estimate(request: &ModelRequest) -> Result<u64, ProviderError> {
    let body = body::body(request, &Dialect::default(), None)?;
    Ok(estimate::estimate(&body))
}

impl Provider for ChatCompletions {
    fn stream(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ProviderError>> {
        Box::pin(async move {
            let reasoning = match &self.dialect.reasoning {
                ReasoningBack::Never => None,
                ReasoningBack::Same => self.heard.get().copied(),
                ReasoningBack::Field(name) => Some(name.as_str()),
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
