//! The driver of Firecracker, with a program that speaks its API and a process of this computer as
//! the machine.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod failures;
mod full_disk;
mod image;
mod jails;
mod machines;
mod ordinary;
mod real;
mod refused;
mod support;
