//! The engine end to end: guests, kernels, pools and backends, with a template that imports nothing heavy.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod backend;
mod bytecode;
mod death;
mod filtered;
mod guest;
mod ordinary_user;
mod pool;
mod protections;
mod support;
mod without_namespaces;
