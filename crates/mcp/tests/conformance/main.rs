//! The server as the protocol's own conformance suite judges it, over HTTP at both revisions.
//!
//! The suite asks for tools, resources and prompts of its own, which
//! [`Fixtures`](cellblock_mcp::fixtures::Fixtures) puts beside the server's. What the server does
//! not offer is in `tests/clients/mcp/expected-failures-*.yml`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod baseline;
mod suite;
