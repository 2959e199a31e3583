//! The dialects end to end, over HTTP: requests as the clients write them, and the clients themselves.

mod jupyter;
mod open_terminal;
mod support;
