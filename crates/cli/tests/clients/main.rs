//! Real clients against `cellblock serve`, whose model is a third party's mock.
//!
//! The scenarios are in `tests/clients`, in the languages of the clients.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod pins;
mod process;
mod soak;
mod suites;
mod world;
