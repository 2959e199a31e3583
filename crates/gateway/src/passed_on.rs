//! Answers of others, which the gateway does not complete as its own.

/// Marks an answer of a program, or of another gateway, in its extensions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PassedOn;
