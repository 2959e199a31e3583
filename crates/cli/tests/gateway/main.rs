//! `cellblock serve` as an operator meets it: keys, refusals, metrics, the end, a crash, and what is left.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod agent;
#[path = "../it/api.rs"]
mod api;
#[cfg(feature = "otlp")]
mod collector;
mod connectors;
mod crash;
mod fetches;
mod http;
mod kept;
mod keys;
mod load;
mod local_tls;
mod mcp;
mod pages;
mod programs;
mod refusals;
mod revoked;
mod runs;
mod server;
mod sorts;
mod stop;
mod volumes;
