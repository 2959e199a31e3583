//! The sections of a configuration that are not options of a crate, and the checks of those that are.

pub(super) mod code_interpreter;
pub(super) mod connectors;
pub(super) mod egress;
pub(super) mod limits;
pub(super) mod mcp;
pub(super) mod mcp_requests;
pub(super) mod mcp_servers;
mod options;
pub(super) mod protections;
pub(super) mod provider;
pub(super) mod providers;
pub(super) mod tls;
