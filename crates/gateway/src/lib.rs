//! The OpenAI-compatible face of Cellblock: only this crate knows OpenAI's names.
//!
//! - [`arguments`] decodes the arguments of a tool call while a provider streams them.
//! - [`provider`] asks models, and puts together what they answer; [`Models`] says which provider has which model.
//! - [`turn`] answers a request: a model's steps, and the code that they run.
//! - [`wire`] has the forms of the Responses API: requests, responses, items, events.
//! - [`server`] is the HTTP server; `responses`, `containers`, `sessions` and `execute` have its routes.
//! - [`remote`] finds out what runs code elsewhere; [`execute_server`] asks servers that keep nothing.
//! - [`records`] is what is remembered across restarts.

pub mod arguments;
mod containers;
mod execute;
pub mod execute_server;
mod models;
mod options;
pub mod provider;
pub mod records;
pub mod remote;
mod responses;
pub mod server;
mod sessions;
pub mod turn;
pub mod wire;

pub use models::Models;
pub use options::Options;
