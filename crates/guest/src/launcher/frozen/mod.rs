//! The frozen template: a template that was started once, imported the image's libraries, and was
//! written to a file, from which later starts map it instead of importing again.
//!
//! ```text
//! launcher that freezes                           launcher of a host
//! keep ── template ──memory, registers──> files ──mapped privately──> template ┄ kernels
//!          (stopped in its first `poll`)            (in a child of the keep)
//! ```
//!
//! A launcher of its own freezes, before any user code exists. It has no rooms. A template stops
//! before it opens anything that depends on the policy, and installs its filters after it is thawed.
//!
//! The child maps the files at the addresses that the template had, moves Linux's own code for
//! clocks to where the template expects it, and continues in the system call in which the template
//! was stopped. Whatever differs from the time of freezing, such as the kernel, the processor or a
//! library, changes the key or is found before anything is unmapped, and then the image's
//! libraries are imported as without a frozen template.

#[cfg(target_arch = "x86_64")]
mod freeze;
#[cfg(target_arch = "x86_64")]
mod key;
#[cfg(target_arch = "x86_64")]
mod make;
mod manifest;
mod place;
#[cfg(target_arch = "x86_64")]
mod stub;
#[cfg(target_arch = "x86_64")]
mod thaw;

#[cfg(not(target_arch = "x86_64"))]
mod elsewhere;
#[cfg(not(target_arch = "x86_64"))]
pub use elsewhere::place;
#[cfg(not(target_arch = "x86_64"))]
pub(super) use elsewhere::{LOADER, become_frozen, make};
#[cfg(target_arch = "x86_64")]
pub use key::place;
#[cfg(target_arch = "x86_64")]
pub(super) use make::make;
pub use place::{FrozenPlace, FrozenState};
#[cfg(target_arch = "x86_64")]
pub(super) use {stub::LOADER_RANGE as LOADER, thaw::become_frozen};

/// Directory in a keep through which it sees the files.
pub(super) const DIRECTORY: &str = "/opt/frozen";
/// Number of a template's control socket.
#[cfg(target_arch = "x86_64")]
const CONTROL: u32 = 3;
