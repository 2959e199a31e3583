//! Model providers, which generate answers and tool calls.
//!
//! A [`Provider`] takes a [`ModelRequest`] and streams [`ModelEvent`]s, always in this order
//! regardless of its server:
//!
//! ```text
//! (Text | Refusal | Reasoning | Sealed | CallBegin{n} | Arguments{n})*  CallEnd{n}*  Usage?  Finish
//! ```
//!
//! A stream that ends otherwise ends with an error. Each call has one begin, its arguments after
//! that, and one end.

pub mod chat;
pub mod demo;
mod error;
mod http;
mod key;
mod options;
mod reading;
mod request;
pub mod responses;
pub mod script;
pub mod scripted;
mod sse;
#[cfg(test)]
pub(crate) mod tests;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;

pub use crate::wire::INTERPRETER;
pub use error::ProviderError;
pub use http::ProviderEndpoint;
pub use key::{KeyError, ProviderKey};
pub use options::{Retries, Timeouts};
pub use request::{ModelRequest, called};

use crate::wire::TokenUsage;

/// A source of answers.
pub trait Provider: Send + Sync {
    /// Calls a model. Failures before the response are returned as an error, possibly after
    /// retries; later failures are in the stream.
    fn stream(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ProviderError>>;

    /// Returns the number of tokens that the model would read, as counted by its server; none if
    /// the server cannot count.
    fn count(&self, _request: ModelRequest) -> BoxFuture<'_, Result<Option<u64>, ProviderError>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Lists its models. Empty by default: such a provider accepts any model name.
    fn models(&self) -> BoxFuture<'_, Result<Vec<OwnModel>, ProviderError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}

/// Counts the tokens that a model would read, and says who has counted: `provider`, or `estimate` if its
/// server cannot count.
pub async fn count_tokens(
    provider: &dyn Provider,
    request: ModelRequest,
) -> Result<(u64, &'static str), ProviderError> {
    Ok(match provider.count(request.clone()).await? {
        Some(tokens) => (tokens, "provider"),
        None => (chat::estimate(&request)?, "estimate"),
    })
}

/// A model in a provider's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnModel {
    /// Name of the model.
    pub id: String,
    /// Creation time in seconds since 1970, if it is known.
    pub created: Option<u64>,
}

/// A stream of a model's events. Dropping it cancels the request.
pub type ModelStream = BoxStream<'static, Result<ModelEvent, ProviderError>>;

/// An event in a model's response.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelEvent {
    /// A piece of text.
    Text(String),
    /// A piece of a refusal.
    Refusal(String),
    /// A piece of reasoning.
    Reasoning(String),
    /// The reasoning so far is complete; this is it in the form that only its provider reads.
    Sealed(String),
    /// A call of a tool starts.
    CallBegin {
        /// Index among the calls, from 0.
        call: usize,
        /// The provider's id, or a generated one.
        id: String,
        /// Name of the tool.
        name: String,
    },
    /// A piece of a call's arguments: JSON, split anywhere.
    Arguments {
        /// Index of the call.
        call: usize,
        /// The piece.
        delta: String,
    },
    /// A call is complete.
    CallEnd {
        /// Index of the call.
        call: usize,
    },
    /// Token usage.
    Usage(TokenUsage),
    /// The end of the response.
    Finish(Finish),
}

/// The reason why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// Its answer is complete.
    Stop,
    /// It waits for the results of its calls.
    Calls,
    /// It reached the maximum number of tokens.
    Length,
    /// The provider's content filter stopped it.
    ContentFilter,
}
