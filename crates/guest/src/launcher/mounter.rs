//! The mounter: a short-lived process by which a host that may not mount makes a detached mount of one file.
//!
//! It has a user and a mount namespace of its own, in which it may copy the mounts that it sees; a room takes the copy over
//! (`Operation::MountData`). The host executes itself under the name [`NAME`], as for the launcher, with a packet socket as standard input.

use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::path::PathBuf;

use cellblock_jail::error::chain;
use cellblock_jail::{Error, Result, fds, mounts};

/// The name (`argv[0]`) under which a host executes itself to become a mounter.
pub const NAME: &str = "cellblock-mounter";

/// Serves one request on standard input: the path of a file, with the file as a descriptor. Answers with the mount, or why there is none.
pub fn run() -> i32 {
    // SAFETY: standard input is open: the host passes the socket there, and nothing else in this process uses it.
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
