//! The OpenAI-compatible face of Cellblock: only this crate knows OpenAI's names.
//!
//! - [`arguments`] decodes the arguments of a tool call while a provider streams them.
//! - [`provider`] asks models, and puts together what they answer; [`Models`] says which provider has which model.
//! - [`turn`] answers a request: a model's steps, and the code that they run.
//! - [`tools`] are those of servers, which turns fetch data with.
//! - [`wire`] has the forms of the Responses API (requests, responses, items, events), and of Chat Completions in terms of them.
//! - [`server`] is the HTTP server; `responses`, `conversations`, `containers`, `files`, `sessions`, `artifacts` and `execute` have its routes.
//! - [`keys`] says who may call, [`quotas`] how much; `metrics` counts.
//! - [`openapi`] describes the routes.
//! - [`remote`] finds out what runs code elsewhere; [`execute_server`] asks servers that keep nothing.
//! - [`records`] is what is remembered across restarts.

pub mod arguments;
mod artifacts;
mod clock;
mod containers;
mod conversations;
mod engine;
mod execute;
pub mod execute_server;
mod files;
mod health;
pub mod keys;
mod listing;
mod metrics;
mod models;
pub mod openapi;
mod options;
mod problem;
pub mod provider;
pub mod quotas;
pub mod records;
pub mod remote;
mod responses;
pub mod server;
mod sessions;
pub mod tools;
pub mod turn;
mod welcome;
pub mod wire;

pub(crate) use clock::now;
pub use containers::{ContainerOptions, Containers, StickyKey};
pub use engine::{Elsewhere, Engine};
pub use execute::ExecuteOptions;
pub use files::FileOptions;
pub use metrics::MetricsOptions;
pub use models::{Asking, Model, Models, Offer};
pub use options::Options;
pub use remote::RemoteOptions;
pub use responses::ResponseOptions;
pub use sessions::SessionsOptions;

/// Where events go that whoever watches over security wants to see.
pub(crate) const SECURITY: &str = "cellblock::security";

/// Bytes of the operating system's generator.
pub(crate) fn random<const BYTES: usize>() -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    let mut filled = 0;
    while filled < BYTES {
        // The call cannot fail for so few bytes but when it is interrupted.
        filled +=
            rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()).unwrap_or(0);
    }
    bytes
}
