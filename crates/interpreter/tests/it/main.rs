//! The product API end to end: real cells in real sandboxes of the default image.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod alias;
mod analyst;
mod bad_inputs;
mod chart;
mod connectors;
mod datasets;
mod derivation;
mod display;
mod dry_run;
mod endings;
mod example;
mod files;
mod flood;
mod guard;
mod inputs;
mod isolation;
mod lent;
mod lifecycle;
mod limits;
mod lineage;
mod place;
mod requirements;
mod rescue;
mod setup;
mod snippets;
mod stops;
mod streaming;
mod support;
mod timeseries;
mod variables;
