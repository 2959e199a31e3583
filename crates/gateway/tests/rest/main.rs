//! Our own REST as clients have it: over HTTP, with real sandboxes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod artifacts;
mod backends;
mod bad_input;
mod browser;
mod cells;
mod checkpoints;
mod connectors;
mod console;
mod decisions;
mod events;
mod execute;
mod files;
mod forks;
mod full_disk;
#[path = "../../../mcp/tests/it/greeter.rs"]
mod greeter;
mod keys;
mod longest;
mod network;
mod openapi;
mod owners;
mod ports;
mod prepared;
mod preview_hosts;
mod processes;
mod projects;
mod remote;
mod runs;
mod stopping;
mod support;
mod terminals;
mod tools;
mod uploads;
mod volumes;
mod weather;
