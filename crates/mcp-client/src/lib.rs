//! Cellblock as a client of the Model Context Protocol: servers of others that offer tools, called on the host.
//!
//! - [`ForeignServer`] is a server, a program that is started here or one behind a URL, in either revision of the protocol.
//! - [`RequestedServers`] gives those that a request names, within an operator's [patterns](UrlPattern).
//!
//! All that a server sends is hostile: its sizes, its forms, its silence. Each has a bound, and what is beyond it is a
//! [`ToolServerError`](cellblock_agent::ToolServerError) in words that a model can go on from; its cause goes to the log.
//!
//! The library `rmcp` speaks the protocol. The module `wire` bounds and sorts what arrives before `rmcp` reads it.

mod allowed;
mod connection;
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

pub use self::http::{Address, AddressError};
pub use allowed::{PatternError, UrlPattern};
pub use options::ServerOptions;
pub use requested::RequestedServers;
pub use server::ForeignServer;
pub use stdio::Program;

/// How a server is reached.
#[derive(Clone, Debug)]
pub enum Transport {
    /// It is a program, which is started when it is first used.
    Stdio(Program),
    /// It is behind a URL.
    Http(Address),
}
