//! Servers behind a URL, connected over streamable HTTP.

mod address;
mod allowed;
mod body;
mod events;
mod post;

pub(super) use address::parse;
pub use address::{Address, AddressError};
pub use allowed::{PatternError, UrlPattern};
pub(super) use post::start;
