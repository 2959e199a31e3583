//! The sections of a configuration, a file each: its keys, their defaults, and what must not stand together.

pub(super) mod auth;
pub(super) mod code_interpreter;
pub(super) mod containers;
pub(super) mod execute;
pub(super) mod files;
pub(super) mod http;
pub(super) mod limits;
pub(super) mod mcp;
pub(super) mod metrics;
pub(super) mod models;
pub(super) mod pool;
pub(super) mod protections;
pub(super) mod provider;
pub(super) mod providers;
pub(super) mod quotas;
pub(super) mod remote;
pub(super) mod responses;
pub(super) mod sessions;
pub(super) mod tls;
pub(super) mod turn;
