//! The server end to end: a client of the protocol, real cells in real sandboxes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod checkpoints;
mod derivation;
mod end;
mod exact;
mod files;
mod greeter;
mod http;
mod meter;
mod notebook;
mod processes;
mod prompts;
mod rehearsals;
mod run_python;
mod sessions;
#[path = "../../../interpreter/tests/conformance/shop.rs"]
mod shop;
mod stdio;
mod stops;
mod support;
mod tasks;
mod tools;
#[path = "../../../gateway/tests/rest/weather.rs"]
mod weather;
mod workbench;
