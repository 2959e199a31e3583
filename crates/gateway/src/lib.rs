//! The HTTP face of Cellblock: OpenAI's routes and our own REST, over the agent loop of `cellblock_agent`.
//!
//! - [`Models`] says which provider has which model.
//! - [`Gateway`] is what handlers share.
//! - [`server`] is the HTTP server; `responses`, `conversations`, `containers`, `files`,
//!   `sessions`, `skills`, `volumes`, `artifacts` and `execute` have its routes.
//! - [`keys`] says who may call, [`quotas`] how much; `metrics` counts.
//! - [`description`] describes the routes; `console` has the pages for people.
//! - [`remote`] finds out what runs code elsewhere; [`execute_server`] asks servers that keep nothing.
//! - [`records`] is what is remembered across restarts; `replicas` sends requests to the gateway
//!   that has what they need.

mod anthropic;
mod artifacts;
mod attended;
mod body_limit;
mod connectors;
mod console;
mod containers;
mod conversations;
mod conversions;
mod decision_routes;
mod decisions;
pub mod description;
mod disk;
mod engine;
mod execute;
pub mod execute_server;
mod files;
mod health;
mod json;
mod key_routes;
pub mod keys;
mod listing;
mod metrics;
mod model_routes;
mod models;
mod openapi;
pub mod options;
mod origin;
mod own_key;
mod preview;
mod problem;
mod projects;
pub mod quotas;
pub mod records;
pub mod remote;
mod replicas;
mod responses;
mod retry;
mod run_log;
pub mod runs;
pub mod server;
mod server_routes;
mod sessions;
mod signed;
pub mod skills;
mod state;
mod uploads;
pub mod volumes;
mod welcome;

pub(crate) use cellblock_interpreter::random_bytes as random;
pub(crate) use cellblock_settings::clock::{signed_unix_millis as now_ms, unix_seconds as now};
pub use engine::{Engine, RemoteEngine};
pub use metrics::start as start_metrics;
pub use models::{Model, Models, Offer};
pub use options::Options;
pub use state::{Caller, Containers, Gateway, GatewayState};

/// Target of events that matter for security.
pub(crate) const SECURITY: &str = "cellblock::security";
