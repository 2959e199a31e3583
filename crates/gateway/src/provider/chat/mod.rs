//! Chat Completions of any server that offers them: vLLM, Ollama, llama.cpp, OpenAI and others.

mod assemble;
mod body;
#[cfg(test)]
mod tests;

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
}

/// Where servers differ in what they accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// The field for the most tokens: `max_tokens`, or `max_completion_tokens` as newer models of OpenAI want it.
    pub max_tokens_field: String,
    /// The role of the application: `system`, or `developer`.
    pub system_role: String,
    /// The field in which earlier reasoning is sent back, for models that want it between their calls. Some templates refuse it, so none is
    /// the default.
    pub reasoning_field: Option<String>,
    /// Whether the server is asked for usage, which some refuse.
    pub stream_usage: bool,
}

impl Default for Dialect {
    fn default() -> Self {
        Self {
            max_tokens_field: "max_tokens".to_owned(),
            system_role: "system".to_owned(),
            reasoning_field: None,
            stream_usage: true,
        }
    }
}

impl ChatCompletions {
    /// Chat Completions at an endpoint.
    pub fn new(endpoint: Endpoint) -> Self {
        let dialect = Dialect::default();
        Self { endpoint, dialect }
    }

    /// Speaks as the server wants it.
    #[must_use]
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }
}

impl Provider for ChatCompletions {
    fn stream(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ProviderError>> {
        Box::pin(async move {
            let body = body::body(&request, &self.dialect)?;
            let body = self.endpoint.post("chat/completions", &body).await?;
            Ok(read(self.endpoint.clone(), body, Assembler::new()))
        })
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<OwnModel>, ProviderError>> {
        Box::pin(self.endpoint.models())
    }
}
