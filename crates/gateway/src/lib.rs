//! The OpenAI-compatible face of Cellblock: only this crate knows OpenAI's names.
//!
//! - [`arguments`] decodes the arguments of a tool call while a provider streams them.
//! - [`provider`] asks models, and puts together what they answer.
//! - [`turn`] answers a request: a model's steps, and the code that they run.
//! - [`wire`] has the forms of the Responses API: requests, responses, items, events.
//!
//! Nothing here starts a server yet.

pub mod arguments;
pub mod provider;
pub mod turn;
pub mod wire;
