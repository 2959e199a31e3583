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
    /// The field in which the server tells reasoning.
    heard: Arc<OnceLock<&'static str>>,
}

/// Where servers differ in what they accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// The field for the most tokens: `max_tokens`, or `max_completion_tokens` as newer models of OpenAI want it.
    pub max_tokens_field: String,
    /// The role of the application: `system`, or `developer`.
    pub system_role: String,
    /// Whether, and under which name, reasoning is sent back to models that want it between their calls.
    pub reasoning: ReasoningBack,
    /// Whether the server is asked for usage, which some refuse.
    pub stream_usage: bool,
    /// Whether the server knows the field `parallel_tool_calls`; it is sent only where a request forbids such calls.
    pub parallel_tool_calls: bool,
    /// Whether the server knows `strict` in a function; it is sent only where a request demands it.
    pub strict: bool,
}

/// Whether, and under which name, reasoning is sent back. Some templates refuse it, so that it is not by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ReasoningBack {
    /// It is not.
    #[default]
    Never,
    /// In the field in which the server told it.
    Same,
    /// In this field.
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
    /// Chat Completions at an endpoint.
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            dialect: Dialect::default(),
            heard: Arc::default(),
        }
    }

    /// Speaks as the server wants it.
    #[must_use]
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }
}

/// How many tokens a request has, roughly.
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
