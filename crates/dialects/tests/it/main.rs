//! The dialects end to end, over HTTP: requests as the clients write them, and the clients themselves.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod e2b;
mod guides;
mod jupyter;
mod librechat;
mod open_terminal;
mod opensandbox;
mod requirements;
mod support;
