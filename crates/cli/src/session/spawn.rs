//! Starts the host of a session, or a warm host, which outlives the command that starts it and
//! shares nothing with it.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use cellblock_image::Home;
use rustix::pipe::{PipeFlags, pipe_with};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

use super::place::{HeldLock, SessionPlace};
use crate::cancel::Cancel;
use crate::env_vars;
use crate::error::{Error, Result};
use crate::session_error::{SessionError, WireError};

/// Report that a host sends once, as soon as it serves or fails.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HostReport {
    /// It serves; these are for the user to read.
    Ready { notes: Vec<String> },
    /// It has given up.
    Failed { failure: WireError },
}

/// More than a report has.
const MAX_REPORT: u64 = 1 << 20;

/// A host on its way. Dropping it ends the host, unless it was ready.
#[derive(Debug)]
struct HostStart {
    place: SessionPlace,
    child: Option<Child>,
    report: OwnedFd,
}

impl HostStart {
    /// Starts it. Its stdin is the lock, its stdout takes the report, its stderr is the log; it
    /// puts the first two away when it has them.
    fn spawn(home: &Home, place: SessionPlace, held: &HeldLock) -> Result<Self> {
        let (report, theirs) =
            pipe_with(PipeFlags::CLOEXEC).map_err(|errno| Error::process("make a pipe")(errno.into()))?;
        let child = start(home, &place, held, theirs.into())?;
        Ok(Self {
            place,
            child: Some(child),
            report,
        })
    }

    /// Waits until it serves; gives what the user should know.
    async fn ready(mut self) -> Result<Vec<String>> {
        let report = self
            .report()
            .await
            .map_err(Error::process("listen to the host"))?;
        match report {
            Some(HostReport::Ready { notes }) => {
                // It is nobody's child from now on.
                drop(self.child.take());
                Ok(notes)
            }
            Some(HostReport::Failed { failure }) => Err(Error::Told(failure)),
            None => Err(SessionError::Stillborn {
                kind: self.place.kind(),
                log: self.place.log(),
            }
            .into()),
        }
    }

    async fn report(&mut self) -> io::Result<Option<HostReport>> {
        rustix::io::ioctl_fionbio(&self.report, true)?;
        let mut json = Vec::new();
        Receiver::from_owned_fd(self.report.try_clone()?)?
            .take(MAX_REPORT)
            .read_to_end(&mut json)
            .await?;
        Ok(serde_json::from_slice(&json).ok())
    }
}

impl Drop for HostStart {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
            // The lock's last holder may be this very command, so this is no sweeping.
            let _ = self.place.remove();
        }
    }
}

/// Starts it for nobody to wait for: what it has to say is in its log.
pub(crate) fn leave_behind(home: &Home, place: &SessionPlace, held: &HeldLock) -> Result<()> {
    removing(place, start(home, place, held, Stdio::null()).map(drop))
}

/// Starts a host and waits until it serves; returns notes for the user. After an error or Ctrl-C,
/// nothing is left of it.
pub(crate) async fn started(
    home: &Home,
    place: &SessionPlace,
    held: &HeldLock,
    cancel: &mut Cancel,
) -> Result<Vec<String>> {
    let starting = removing(place, HostStart::spawn(home, place.clone(), held))?;
    cancel.unless(starting.ready()).await
}

/// Removes the place of a host that could not be started.
fn removing<T>(place: &SessionPlace, started: Result<T>) -> Result<T> {
    started.inspect_err(|_| {
        // The error is what matters; a place that stays is swept later.
        let _ = place.remove();
    })
}

fn start(home: &Home, place: &SessionPlace, held: &HeldLock, report: Stdio) -> Result<Child> {
    Command::new("/proc/self/exe")
        .arg0("cellblock")
        .args([place.kind().command(), "host", place.id().as_str()])
        // The host lives in `/`, and a home may be named relative to here.
        .env(env_vars::HOME.name, home.root())
        .stdin(Stdio::from(held.share()?))
        .stdout(report)
        .stderr(Stdio::from(place.open_log()?))
        .spawn()
        .map_err(Error::process("start the host"))
}

/// Tells the one who waits, and closes the line.
pub(crate) fn report(mut to: File, report: &HostReport) -> Result<()> {
    let json = serde_json::to_vec(report).map_err(|error| Error::process("report")(error.into()))?;
    to.write_all(&json).map_err(Error::process("report"))
}
