//! The parts of the product API that no backend has a share in, end to end: real cells in real
//! sandboxes of the default image.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod alias;
mod analyst;
mod chart;
mod connection;
mod datasets;
mod dry_run;
mod example;
mod lent;
mod place;
#[path = "../conformance/remote.rs"]
mod remote;
mod setup;
mod snippets;
#[path = "../conformance/support.rs"]
mod support;
