//! The Responses API of another server: OpenAI, vLLM, or a gateway like this one.

mod assemble;
mod body;
#[cfg(test)]
mod tests;

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::http::ProviderEndpoint;
use super::reading::read;
use super::{ModelRequest, ModelStream, OwnModel, Provider, ProviderError};
use assemble::Assembler;

/// The fields of a request that count as its input.
const COUNTED: [&str; 8] = [
    "model",
    "input",
    "instructions",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning",
    "text",
];

/// A server's Responses API. It is asked not to store anything, and gets the whole conversation
/// each time.
#[derive(Clone, Debug)]
pub struct Responses {
    endpoint: ProviderEndpoint,
}

impl Responses {
    /// Creates a client for the Responses API of an endpoint.
    pub const fn new(endpoint: ProviderEndpoint) -> Self {
        Self { endpoint }
    }
}

impl Provider for Responses {
    fn stream(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ProviderError>> {
        Box::pin(async move {
            if !request.sampling.stop.is_empty() {
                let message = "this model's provider is asked over the Responses API, which has no \
                               `stop`; leave it out";
                return Err(ProviderError::Unsupported {
                    param: "stop",
                    message: message.to_owned(),
                });
            }
            let body = self.endpoint.post("responses", &body::body(&request)).await?;
            Ok(read(self.endpoint.clone(), body, Assembler::new()))
        })
    }

    fn count(&self, request: ModelRequest) -> BoxFuture<'_, Result<Option<u64>, ProviderError>> {
        Box::pin(async move {
            let mut body = body::body(&request);
            if let Some(fields) = body.as_object_mut() {
                fields.retain(|key, _| COUNTED.contains(&key.as_str()));
            }
            let mut answer = match self.endpoint.post("responses/input_tokens", &body).await {
                Ok(answer) => answer,
                // Few servers have this route.
                Err(ProviderError::Status {
                    status: 404 | 405 | 501,
                    ..
                }) => return Ok(None),
                Err(error) => return Err(error),
            };
            let answer: Value =
                serde_json::from_slice(&answer.whole(Vec::new()).await?).map_err(|error| {
                    ProviderError::malformed(format!("the count of tokens is not JSON: {error}"))
                })?;
            Ok(answer["input_tokens"].as_u64())
        })
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<OwnModel>, ProviderError>> {
        Box::pin(self.endpoint.models())
    }
}
