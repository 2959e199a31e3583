//! The version number that decides whether a host and a guest are compatible.

/// The generation of the protocol, sent in each `hello`. A host accepts only guests of its own
/// generation.
pub const GENERATION: u32 = 6;
