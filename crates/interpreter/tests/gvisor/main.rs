//! The product API over the gVisor backend: the same tests as with sandboxes of this machine. Not run by default, because `runsc` must be
//! installed: `cargo test -p cellblock-interpreter --test gvisor`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../it/bad_inputs.rs"]
mod bad_inputs;
#[path = "../it/connectors.rs"]
mod connectors;
#[path = "../it/derivation.rs"]
mod derivation;
#[path = "../it/display.rs"]
mod display;
#[path = "../it/endings.rs"]
mod endings;
#[path = "../it/files.rs"]
mod files;
#[path = "../it/flood.rs"]
mod flood;
#[path = "../it/guard.rs"]
mod guard;
#[path = "../it/inputs.rs"]
mod inputs;
#[path = "../it/isolation.rs"]
mod isolation;
#[path = "../it/lifecycle.rs"]
mod lifecycle;
#[path = "../it/limits.rs"]
mod limits;
#[path = "../it/lineage.rs"]
mod lineage;
mod place;
#[path = "../it/requirements.rs"]
mod requirements;
#[path = "../it/rescue.rs"]
mod rescue;
#[path = "../it/stops.rs"]
mod stops;
#[path = "../it/streaming.rs"]
mod streaming;
#[path = "../it/support.rs"]
mod support;
#[path = "../it/timeseries.rs"]
mod timeseries;
#[path = "../it/variables.rs"]
mod variables;
