//! The OpenAI-compatible face of Cellblock: only this crate knows OpenAI's names.
//!
//! - [`arguments`] decodes the arguments of a tool call while a provider streams them.
//! - [`provider`] asks models, and puts together what they answer; [`Models`] says which provider has which model.
//! - [`turn`] answers a request: a model's steps, and the code that they run.
//! - [`wire`] has the forms of the Responses API: requests, responses, items, events.
//! - [`server`] is the HTTP server; `responses`, `containers`, `sessions` and `execute` have its routes.
//! - [`keys`] says who may call, [`quotas`] how much; `metrics` counts.
//! - [`records`] is what is remembered across restarts.

pub mod arguments;
mod containers;
mod execute;
pub mod keys;
mod metrics;
mod models;
mod options;
pub mod provider;
pub mod quotas;
pub mod records;
mod responses;
pub mod server;
mod sessions;
pub mod turn;
pub mod wire;

pub use metrics::MetricsOptions;
pub use models::Models;
pub use options::Options;

/// Where events go that whoever watches over security wants to see.
pub(crate) const SECURITY: &str = "cellblock::security";

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

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
