//! Servers behind a URL, connected over streamable HTTP.

mod address;
mod body;
mod events;
mod post;

pub use address::{Address, AddressError};
pub(super) use address::{is_loopback, parse};
pub(super) use post::start;
