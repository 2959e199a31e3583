//! Claims in a cluster: their life, their errors, outages in the middle, and what a dead process
//! leaves. The cluster is a fake one; `real` does all this in a real one, where there is one.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod crash;
mod errors;
mod life;
mod many;
mod outages;
mod real;
mod support;
