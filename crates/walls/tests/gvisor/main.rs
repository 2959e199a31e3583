//! The gVisor backend on the default image: kernels driven by hand, and what a machine leaves behind.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cells;
mod death;
mod measure;
mod refused;
mod snapshots;
mod support;
