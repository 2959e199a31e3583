//! The microVM backend on the default image: kernels driven by hand, and what a machine leaves behind. Machines are emulated where
//! KVM does not work, and all tests share one template, which then takes minutes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cells;
mod death;
mod fakes;
#[path = "../firecracker/full_disk.rs"]
mod full_disk;
mod refused;
#[path = "../firecracker/image.rs"]
mod small_image;
mod snapshots;
mod support;
