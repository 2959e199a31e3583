//! Cellblock as a client of the Model Context Protocol: other parties' servers that offer tools,
//! called on the host.
//!
//! - [`ForeignServer`] is a server, either a program that is started here or one behind a URL, with
//!   either revision of the protocol.
//! - [`ServerConnector`] lets code in sandboxes call a server's tools as functions.
//! - [`RequestedServers`] provides those that a request names, if they match an operator's
//!   [patterns](UrlPattern).
//!
//! Everything that a server sends is hostile: its sizes, its forms, its silence. Each has a limit,
//! and exceeding it is a [`ToolServerError`](cellblock_agent::ToolServerError) in words with which
//! a model can continue; its cause is logged.
//!
//! The library `rmcp` implements the protocol. The module `wire` limits and sorts received data
//! before `rmcp` reads it.

mod connection;
mod connector;
mod failure;
mod http;
mod listing;
mod message;
mod options;
pub mod probe;
mod reach;
mod reply;
mod requested;
mod scan;
mod schema;
mod server;
mod stdio;
mod wire;
mod words;

pub use self::http::{Address, AddressError, PatternError, UrlPattern};
pub use connector::ServerConnector;
pub use options::{OfferPolicy, RequestedServerOptions, ServerOptions};
pub use requested::RequestedServers;
pub use server::ForeignServer;
pub use stdio::StdioProgram;

/// The way to reach a server.
#[derive(Clone, Debug)]
pub enum Transport {
    /// A program, which is started when it is first used.
    Stdio(StdioProgram),
    /// A server behind a URL.
    Http(Address),
}
