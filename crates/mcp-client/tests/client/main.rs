//! Cellblock as a client of tool servers: correct ones, in both revisions and over both transports,
//! and misbehaving ones.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cancel;
mod everything;
mod http;
mod http_wrong;
mod process;
mod stdio;
mod stdio_wrong;
mod support;
