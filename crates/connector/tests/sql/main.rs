//! Connectors over databases, with real servers: what is read, what is refused, and what ends when
//! a call does.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod answers;
mod mysql;
mod options;
mod postgres;
mod server;
mod sqlite;
#[path = "../table/mod.rs"]
mod table;
