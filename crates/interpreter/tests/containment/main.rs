//! The containment suite: probes in real sandboxes, the same probes without one, and pairs of
//! sandboxes that must not share.
//!
//! The programs are in `tests/containment/` at the root, whose README says how they are written.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../conformance/backend.rs"]
mod backend;
mod bait;
mod checkpoints;
mod commands;
mod contained;
mod forks;
mod frozen;
#[path = "../../../walls/tests/firecracker/image.rs"]
mod lean_image;
#[path = "../../../walls/tests/microvm/machine_image.rs"]
mod machine_image;
mod neighbors;
mod ordinary;
mod pairs;
mod probe;
mod processes;
mod programs;
mod rehearsals;
mod repeating;
mod scripts;
mod seeds;
#[path = "../conformance/shop.rs"]
mod shop;
mod support;
mod uncontained;
mod verdict;
