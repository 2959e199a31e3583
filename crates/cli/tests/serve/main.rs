//! `cellblock serve` as its configuration says, beside servers of models on loopback.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod answers;
mod compose;
mod elsewhere;
mod execute;
mod kubernetes;
mod refusals;
mod replicas;
mod support;
