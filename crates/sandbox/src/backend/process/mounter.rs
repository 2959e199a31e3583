//! Creating a detached mount of a file, either in this process or in a helper with its own
//! namespaces.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use cellblock_guest::launcher::mounter::NAME;
use cellblock_jail::fds;
use cellblock_jail::mounts::file_mount;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::process::Command;

use super::control::io_error;
use super::internal;
use crate::error::{DuringIo, Result, SandboxErrorKind};

/// Maximum time for the helper on a busy machine.
const LIMIT: Duration = Duration::from_secs(20);
const ACTION: &str = "create a mount of a file";

pub(super) async fn mount_of(executable: &Path, file: &File, path: &Path) -> Result<OwnedFd> {
    if let Ok(mount) = file_mount(file.as_fd()) {
        return Ok(mount);
    }
    let (ours, theirs) = fds::packet_pair().map_err(internal)?;
    let mut command = Command::new(executable);
    command
        .arg0(NAME)
        .env_clear()
        .stdin(theirs)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let mut child = command
        .spawn()
        .map_err(|error| SandboxErrorKind::spawn(ACTION, error))?;
    drop(command);
    fds::send(&ours, &path, &[file.as_fd()]).map_err(internal)?;
    rustix::io::ioctl_fionbio(&ours, true).during("make a socket non-blocking")?;
    let socket = UnixStream::from_std(ours.into()).during("watch a socket")?;
    let answer = socket.async_io(Interest::READABLE, || {
        fds::receive::<Option<String>>(socket.as_fd()).map_err(io_error)
    });
    let answer = tokio::time::timeout(LIMIT, answer)
        .await
        .map_err(|_| SandboxErrorKind::TooLate {
            what: "a mount",
            limit: LIMIT,
        })?;
    let answer = answer.during("hear of a mount")?;
    let _ = child.wait().await;
    let reason = match answer {
        Some((None, mut mounts)) => match mounts.pop() {
            Some(mount) => return Ok(mount),
            None => {
                "the descriptor did not arrive: too many open files; raise the limit (`ulimit -n`)".to_owned()
            }
        },
        Some((Some(reason), _)) => reason,
        None => "the helper exited immediately".to_owned(),
    };
    Err(SandboxErrorKind::Launcher {
        action: ACTION,
        reason,
    }
    .into())
}
