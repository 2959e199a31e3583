//! `cellblock serve` as its configuration says, beside servers of models on loopback.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod answers;
mod compose;
mod drain;
mod elsewhere;
mod execute;
#[cfg(feature = "kubernetes")]
mod kubernetes;
mod refusals;
mod replicas;
mod support;
