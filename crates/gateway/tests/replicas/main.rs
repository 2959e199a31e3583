//! Gateways over one Postgres: what lives in one of them is used through the others.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod chaos;
mod drain;
mod ends;
mod mounted;
mod quotas;
mod responses;
mod sessions;
mod socket;
mod support;
#[path = "../responses/waiting.rs"]
mod waiting;
