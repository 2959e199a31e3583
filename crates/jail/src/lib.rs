//! Linux confinement for Cellblock: everything between user code and the machine.
//!
//! Main items:
//! - [`keep`] creates the outer confinement: user, pid, mount and network namespaces with a small
//!   read-only file tree. The template and every room run inside it, and killing its first process
//!   ends all of them.
//! - [`Room`](room::Room) is one sandbox: a namespace set of its own below the keep, with fresh
//!   `/proc`, `/tmp` and `/workspace`.
//! - [`Protection`](protection::Protection) names each kernel mechanism, and [`protection::Report`]
//!   says which are active.
//!
//! ```text
//! launcher (host namespaces: id maps, cgroups, sweeping)
//!   └── keep, pid 1 (minimal tree, no network)
//!         ├── template (forks kernels; see the guest crate)
//!         ├── room, pid 1 = guest ── kernel (forked from the template, joined here)
//!         └── room, pid 1 = guest ── kernel
//! ```
//!
//! This crate knows nothing of Python, frames or HTTP. It starts no thread: `clone` is only sound
//! in a single-threaded process.
#![expect(
    unsafe_code,
    reason = "namespaces, capabilities and seccomp need raw system calls"
)]

pub mod bare;
pub mod caps;
pub mod cgroup;
pub mod confine;
pub mod enclosure;
pub mod error;
pub mod fds;
pub mod ids;
pub mod keep;
pub mod landlock;
pub mod machine;
pub mod memory;
pub mod mounts;
pub mod network;
pub mod probe;
pub mod process;
pub mod protection;
pub mod room;
pub mod scratch;
pub mod seccomp;
pub mod subordinate;
pub mod tree;
pub mod walled;

pub use error::{Error, Result};
