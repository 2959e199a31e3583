//! Implementations of the subcommands.

pub(crate) mod artifact;
pub(crate) mod config;
pub(crate) mod connector;
pub(crate) mod dataset;
pub(crate) mod doctor;
pub(crate) mod image;
pub(crate) mod inside;
pub(crate) mod key;
pub(crate) mod mcp;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod serve;
pub(crate) mod session;
pub(crate) mod skill;
pub(crate) mod tools;
pub(crate) mod volume;
pub(crate) mod warm;
