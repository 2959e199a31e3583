//! Programs that run beside and inside a sandbox, under other names of the host's own executable.
//!
//! - [`launcher`]: a process per host that creates rooms and forks kernels.
//! - [`init`]: the first process of a room: reaps, runs commands, serves files. The protocol calls
//! it *the guest*.
//! - `python/cellblock_kernel`: the kernel, embedded in the binary by [`kernel_package`].
//!
//! A program that uses Cellblock calls [`boot`] as the first statement of its `main`, before any thread exists.
#![expect(
    unsafe_code,
    reason = "signals, exec and wait are system calls without safe wrappers"
)]

pub mod init;
pub mod kernel_package;
pub mod launcher;

/// Becomes a launcher if this process was started as one; otherwise returns at once.
///
/// Must be called before the process has a second thread.
pub fn boot() {
    let role = match std::env::args_os().next() {
        Some(name) if name == launcher::NAME => launcher::run,
        Some(name) if name == launcher::mounter::NAME => launcher::mounter::run,
        _ => return,
    };
    let code = role();
    #[expect(clippy::exit, reason = "a launcher must not return into the host's main")]
    std::process::exit(code);
}
