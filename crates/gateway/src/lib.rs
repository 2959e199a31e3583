//! The OpenAI-compatible face of Cellblock: only this crate knows OpenAI's names.
//!
//! - [`arguments`] decodes the arguments of a tool call while a provider streams them.
//! - [`wire`] has the forms of the Responses API: requests, responses, items, events.
//!
//! Nothing here starts a server yet.

pub mod arguments;
pub mod wire;
