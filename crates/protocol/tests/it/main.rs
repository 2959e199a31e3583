//! Frames and messages as both sides of a channel see them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod frames;
mod messages;
mod properties;
