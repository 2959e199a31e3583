//! The gVisor backend on the default image: kernels driven by hand, and what a machine leaves behind.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cells;
mod death;
#[path = "../firecracker/full_disk.rs"]
mod full_disk;
mod refused;
mod snapshots;
mod support;
mod suspended;
