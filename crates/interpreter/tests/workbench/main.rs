//! The workbench's tools in real sandboxes of the default image.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod checklist;
mod datasets;
mod exec;
mod files;
mod lifecycle;
mod ordinary;
mod outputs;
mod patches;
mod support;
