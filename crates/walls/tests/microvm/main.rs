//! The microVM backend: kernels driven by hand, and what a machine leaves behind. Machines are emulated where
//! KVM does not work, and all tests share one template, which then takes minutes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cells;
mod death;
mod fakes;
#[path = "../firecracker/full_disk.rs"]
mod full_disk;
#[path = "../firecracker/image.rs"]
mod lean_image;
mod machine_image;
mod refused;
mod snapshots;
mod support;
#[path = "../gvisor/suspended.rs"]
mod suspended;
