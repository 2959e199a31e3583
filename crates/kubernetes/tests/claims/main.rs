//! Claims in a fake cluster: their life, their errors, outages in the middle, and what a dead process leaves.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod crash;
mod errors;
mod life;
mod many;
mod outages;
mod support;
