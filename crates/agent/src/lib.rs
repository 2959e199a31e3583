//! The agent loop of Cellblock: a model's steps, and the code and tools that it calls.
//!
//! - [`turn`] answers a request: it calls a model, runs the code that the model writes, and returns
//!   the results to the model.
//! - [`provider`] calls model servers and assembles their responses.
//! - [`arguments`] decodes the arguments of a tool call while a provider streams them.
//! - [`tools`] finds the tools that a turn can call on servers; a [`ToolServer`] is one of these servers.
//! - [`wire`] contains the forms of the Responses API (requests, responses, items, events), and of
//!   Chat Completions in terms of them.
//! - [`metrics`] contains the names of the metrics that this crate counts.
//!
//! Nothing here knows an HTTP server or a database. See `examples/turn.rs` for a turn without a gateway.

pub mod arguments;
pub mod metrics;
pub mod provider;
mod tool_server;
pub mod tools;
pub mod turn;
pub mod wire;

pub use tool_server::{
    LeftOutTool, OfferedTools, ToolReply, ToolServer, ToolServerAddress, ToolServerError, ToolServers,
};
