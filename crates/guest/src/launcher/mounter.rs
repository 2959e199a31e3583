//! The mounter: a short-lived process that creates a detached mount of one file for a host that may
//! not mount.
//!
//! It has its own user and mount namespaces, in which it may copy the mounts that it sees; a room
//! receives the copy (`Operation::MountData`). The host executes itself under the name [`NAME`], as
//! for the launcher, with a packet socket as standard input.

use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::path::PathBuf;

use cellblock_jail::error::chain;
use cellblock_jail::{Error, Result, fds, mounts};

/// Name (`argv[0]`) under which a host executes itself to become a mounter.
pub const NAME: &str = "cellblock-mounter";

/// Serves one request on standard input: the path of a file, with the file as a descriptor.
/// Responds with the mount, or with an error.
pub fn run() -> i32 {
    // SAFETY: standard input is open: the host passes the socket there, and nothing else in this
    // process uses it.
    let host = unsafe { OwnedFd::from_raw_fd(0) };
    match serve(&host) {
        Ok(()) => 0,
        Err(error) => {
            let _ = fds::send(&host, &Some(chain(&error)), &[]);
            70
        }
    }
}

fn serve(host: &OwnedFd) -> Result<()> {
    let Some((path, files)) = fds::receive::<PathBuf>(host)? else {
        return Ok(());
    };
    let [file] = &files[..] else {
        return Err(Error::Child("the file did not arrive".into()));
    };
    let mount = mounts::file_mount_apart(file, &path)?;
    fds::send(host, &None::<String>, &[mount.as_fd()])
}
