//! The remote backend: the tests of guests on it, and what only a connection can do wrong.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cells;
mod cut;
#[path = "../../../sandbox/tests/it/guest.rs"]
mod guest;
mod hostile_client;
mod hostile_server;
mod support;
