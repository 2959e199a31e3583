//! The store as its users see it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod any_store;
mod collect;
mod store;
mod tiered;
