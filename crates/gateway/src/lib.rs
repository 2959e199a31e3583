//! The OpenAI-compatible face of Cellblock: only this crate knows OpenAI's names.
//!
//! - [`arguments`] decodes the arguments of a tool call while a provider streams them.
//! - [`provider`] asks models, and puts together what they answer.
//! - [`wire`] has the forms of the Responses API: requests, responses, items, events.
//!
//! Nothing here starts a server yet.

pub mod arguments;
pub mod provider;
pub mod wire;
