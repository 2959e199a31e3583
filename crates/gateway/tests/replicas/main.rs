//! Two gateways over one Postgres: what lives in one of them is used through the other.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ends;
mod quotas;
mod responses;
mod sessions;
mod socket;
mod support;
#[path = "../responses/waiting.rs"]
mod waiting;
