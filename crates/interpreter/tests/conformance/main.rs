//! Promises of the product, over the backend that `CELLBLOCK_TEST_BACKEND` names: `process` (the default),
//! `gvisor`, `microvm` or `remote`. `cargo xtask ci test` runs this program once for each.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

// First: its macro is used in the others.
#[macro_use]
mod place;

mod backend;
mod bad_inputs;
mod capabilities;
mod checkpoints;
mod checkpoints_model;
mod connectors;
mod derivation;
mod display;
mod egress;
mod endings;
mod files;
mod flood;
mod forks;
mod frozen;
mod guard;
mod hibernation;
mod inputs;
mod isolation;
mod languages;
#[path = "../../../walls/tests/firecracker/image.rs"]
mod lean_image;
mod lifecycle;
mod limited;
mod limits;
mod lineage;
#[path = "../../../walls/tests/microvm/machine_image.rs"]
mod machine_image;
mod network;
mod placeholders;
mod ports;
mod processes;
mod programs;
mod rehearsals;
mod remote;
mod requirements;
mod rescue;
mod shop;
mod skills;
mod stops;
mod stored;
mod streaming;
mod support;
mod terminal_pump;
mod terminals;
mod timeseries;
mod tries;
mod variables;
mod volumes;
