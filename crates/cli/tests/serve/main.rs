//! `cellblock serve` as its configuration says, beside servers of models on loopback.

mod answers;
mod refusals;
mod support;
