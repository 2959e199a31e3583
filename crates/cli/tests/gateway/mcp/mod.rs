//! `/mcp` of a server, asked by a client of the protocol and by hand.

mod answers;
pub(crate) mod client;
mod end;
mod keys;
mod limits;
