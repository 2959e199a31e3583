//! The one number that says whether a host and a guest understand each other.

/// The generation of the protocol, sent in each `hello`. A host speaks only to guests of its own.
pub const GENERATION: u32 = 3;
