//! The remote backend: the guest tests, and errors that only a connection can cause.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cells;
mod cut;
#[path = "../../../sandbox/tests/it/guest.rs"]
mod guest;
mod hostile_client;
mod hostile_server;
mod support;
