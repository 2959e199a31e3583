//! The OpenAI-compatible face of Cellblock: only this crate knows OpenAI's names.
//!
//! - [`arguments`] decodes the arguments of a tool call while a provider streams them.
//!
//! Nothing here starts a server yet.

pub mod arguments;
