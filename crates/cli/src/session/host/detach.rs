//! Detaching of a host from the command that starts it.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use cellblock_sandbox::jail::fds;

use crate::error::{Error, Result};

/// Files that `session start` passes to its host.
#[derive(Debug)]
pub(crate) struct InheritedFiles {
    /// The session's lock, held.
    pub(crate) lock: File,
    /// File for the report.
    pub(crate) report: File,
}

/// Takes what was given along, and lets go of everything else of the caller's: descriptors that a
/// shell has left open, its terminal, its directory. To be called before any thread or other
/// descriptor is there.
pub(crate) fn detach() -> Result<InheritedFiles> {
    let away = Error::process("leave the caller's surroundings");
    inherit().map_err(away)
}

fn inherit() -> io::Result<InheritedFiles> {
    fds::close_all_but(&[]).map_err(io::Error::other)?;
    // Fails for the first of a process group, which a host is only when somebody starts it by hand.
    let _ = rustix::process::setsid();
    std::env::set_current_dir("/")?;
    let lock = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let report = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    // What `ps` and `top` show; the executable has no name in /proc/self/exe.
    rustix::thread::set_name(c"cellblock-host")?;
    Ok(InheritedFiles { lock, report })
}
