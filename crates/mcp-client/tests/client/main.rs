//! Cellblock as a client of servers of tools: good ones, in both revisions and over both transports, and those that do something wrong.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cancel;
mod everything;
mod http;
mod http_wrong;
mod process;
mod stdio;
mod stdio_wrong;
mod support;
