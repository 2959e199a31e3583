//! The dialects end to end, over HTTP: requests as the clients write them, and the clients themselves.

mod open_terminal;
mod support;
