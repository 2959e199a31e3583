//! The Responses API of another server: OpenAI, vLLM, or a gateway like this one.

mod assemble;
mod body;
#[cfg(test)]
mod tests;

use futures_util::future::BoxFuture;

use super::http::Endpoint;
use super::reading::read;
use super::{ModelRequest, ModelStream, OwnModel, Provider, ProviderError};
use assemble::Assembler;

/// A server's Responses API. It is asked to keep nothing, and gets the whole conversation each time.
#[derive(Clone, Debug)]
pub struct Responses {
    endpoint: Endpoint,
}

impl Responses {
    /// The Responses API at an endpoint.
    pub const fn new(endpoint: Endpoint) -> Self {
        Self { endpoint }
    }
}

impl Provider for Responses {
    fn stream(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ProviderError>> {
        Box::pin(async move {
            let body = self.endpoint.post("responses", &body::body(&request)).await?;
            Ok(read(self.endpoint.clone(), body, Assembler::new()))
        })
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<OwnModel>, ProviderError>> {
        Box::pin(self.endpoint.models())
    }
}
