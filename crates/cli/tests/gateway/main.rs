//! `cellblock serve` as an operator meets it: keys, refusals, metrics, the end, a crash, and what is left.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod agent;
#[path = "../it/api.rs"]
mod api;
mod collector;
mod connectors;
mod crash;
mod http;
mod keys;
mod load;
mod mcp;
mod pages;
mod refusals;
mod runs;
mod server;
mod stop;
mod volumes;
