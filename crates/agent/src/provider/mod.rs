//! Model providers: where answers and tool calls come from.
//!
//! A [`Provider`] takes a [`ModelRequest`] and streams [`ModelEvent`]s, always in this order however its server behaves:
//!
//! ```text
//! (Text | Refusal | Reasoning | Sealed | CallBegin{n} | Arguments{n})*  CallEnd{n}*  Usage?  Finish
//! ```
//!
//! A stream that ends otherwise ends with an error. Each call has one begin, its arguments after that, and one end.

pub mod chat;
pub mod demo;
mod error;
mod http;
mod key;
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

pub use error::ProviderError;
pub use http::{Endpoint, Retries, Timeouts};
pub use key::{Key, KeyError};
pub use request::{INTERPRETER, ModelRequest, called};

use crate::wire::Usage;

/// Where answers come from.
pub trait Provider: Send + Sync {
    /// Asks a model. What fails before there is an answer is an error here, and may have been tried again; later failures are in the stream.
    fn stream(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ProviderError>>;

    /// Tokens that the model would read, as its server counts them; nothing where the server cannot. By default it cannot.
    fn count(&self, _request: ModelRequest) -> BoxFuture<'_, Result<Option<u64>, ProviderError>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Which models it says that it has. By default none: it answers for whatever it is asked.
    fn models(&self) -> BoxFuture<'_, Result<Vec<OwnModel>, ProviderError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}

/// A model, as its provider lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnModel {
    /// Its name.
    pub id: String,
    /// When it was made, in seconds since 1970, where that is told.
    pub created: Option<u64>,
}

/// What a model does, as it comes. Dropping it ends the request.
pub type ModelStream = BoxStream<'static, Result<ModelEvent, ProviderError>>;

/// A step of a model's answer.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelEvent {
    /// Text was added.
    Text(String),
    /// A refusal was added to.
    Refusal(String),
    /// Reasoning was added.
    Reasoning(String),
    /// The reasoning so far is whole, and this is it in the form that only its provider reads.
    Sealed(String),
    /// A call of a tool begins.
    CallBegin {
        /// Its place among the calls, from 0.
        call: usize,
        /// The provider's id of it, or one of ours where it gives none.
        id: String,
        /// The tool.
        name: String,
    },
    /// Arguments were added: a piece of JSON, cut anywhere.
    Arguments {
        /// Of which call.
        call: usize,
        /// The piece.
        delta: String,
    },
    /// A call is whole.
    CallEnd {
        /// Which one.
        call: usize,
    },
    /// What it took.
    Usage(Usage),
    /// The end.
    Finish(Finish),
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// It had said everything.
    Stop,
    /// It waits for the results of its calls.
    Calls,
    /// It had no tokens left.
    Length,
    /// The provider stopped it.
    ContentFilter,
}
