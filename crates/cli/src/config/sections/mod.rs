//! The sections of a configuration, a file each: its keys, their defaults, and what must not stand together.

pub(super) mod code_interpreter;
pub(super) mod http;
pub(super) mod limits;
pub(super) mod models;
pub(super) mod pool;
pub(super) mod protections;
pub(super) mod provider;
pub(super) mod providers;
pub(super) mod turn;
