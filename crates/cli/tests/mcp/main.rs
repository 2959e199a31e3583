//! Clients of MCP that others wrote, against `cellblock mcp` and `cellblock serve`.
//!
//! Their scenarios are in `tests/clients/mcp`, in the languages of the clients.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod clients;
mod frameworks;
mod guide;
mod inspector;
mod pins;
mod place;
