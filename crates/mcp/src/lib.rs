//! The MCP face: tools, resources and prompts over sessions of the interpreter, for any client of
//! the Model Context Protocol.
//!
//! - [`Server`] answers both current revisions of the protocol, 2025-11-25 and 2026-07-28.
//! - [`serve_stdio`] connects one to stdin and stdout, [`http::service`] makes a tower service of one.
//! - [`LazyInterpreter`] is the interpreter behind it, there already or started when it is first needed.
//! - [`Meter`](cellblock_interpreter::hosting::Meter) says how much an owner may have and run.
//!
//! A session is named by an explicit handle, belongs to the
//! [`Owner`](cellblock_interpreter::hosting::Owner) who made it, and expires. Nothing here knows
//! OpenAI's names, a terminal, or how callers are authenticated: `http::service` is given the
//! caller.

mod answer;
mod asking;
mod conversations;
mod display;
mod engine;
pub mod fixtures;
pub mod http;
mod options;
mod progress;
mod prompts;
mod refusal;
mod resources;
mod server;
mod sessions;
mod shared;
mod stdio;
mod tasks;
mod tools;
mod uri;

pub use display::ImageDisplay;
pub use engine::{LazyInterpreter, StartError};
pub use options::Options;
pub use server::Server;
pub use stdio::{StdioError, serve_stdio};
