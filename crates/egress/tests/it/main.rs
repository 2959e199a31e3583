//! The proxy against servers on loopback.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod address;
mod allow;
mod connect;
mod intercept;
mod local_authority;
mod placeholders;
mod quotas;
mod replace;
mod reuse;
mod secrets;
mod smuggling;
mod support;
mod timeouts;
mod websocket;
