//! Programs that run beside and inside a sandbox, under other names of the host's own executable.
//!
//! - [`launcher`]: a process per host that creates rooms and forks kernels.
//! - [`init`]: the first process of a room: reaps, runs commands, serves files. The protocol calls
//!   it *the guest*.
//! - `python/cellblock_kernel`: the kernel, embedded in the binary by [`kernel_package`]; [`bytecode`] is
//!   what an image's Python has compiled it to.
//!
//! - [`machine`]: a process per sandbox that is a machine of its own; it owns the machine's program.
//!
//! A program becomes the launcher, the first process or the owner before its `main` runs: see
//! [`can_become_launcher`].
#![expect(
    unsafe_code,
    reason = "signals, exec and wait are system calls without safe wrappers"
)]

mod boot;
pub mod bytecode;
pub mod init;
pub mod kernel_package;
pub mod launcher;
pub mod machine;

pub use boot::can_become_launcher;
