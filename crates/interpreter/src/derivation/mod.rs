//! The derivation toolset: what a model is told about it, and what is told about its calls.

pub mod probe;
pub mod prompt;
pub mod tools;
