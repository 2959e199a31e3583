//! The Responses API as a client has it: over HTTP and WebSockets, with scripted models whose code
//! runs in real sandboxes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod approvals;
mod background;
mod bad_input;
mod chat;
mod client_tools;
mod compact;
mod compliance;
mod continuing;
mod conversations;
mod counted;
mod ends;
mod full;
#[path = "../../../mcp/tests/it/greeter.rs"]
mod greeter;
mod kept;
mod lent;
mod market;
mod messages;
mod models;
mod namespaces;
#[path = "../../../agent/src/wire/order.rs"]
mod order;
mod outage;
mod programmatic;
mod programs;
mod research;
mod returned;
mod search;
mod shell;
#[path = "../../../interpreter/tests/conformance/shop.rs"]
mod shop;
mod socket;
mod stored;
mod streams;
mod support;
mod tokens;
mod toolsets;
mod waiting;
#[path = "../rest/weather.rs"]
mod weather;
