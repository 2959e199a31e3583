//! Standard streams of a command: pipes, or a pseudo-terminal of the room.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use cellblock_jail::error::SyscallResult;
use cellblock_protocol::TerminalSize;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::pty::{ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::feed::Feed;

/// Device that makes the room's terminals. Only the guest may open it, since Landlock hides it from
/// everything else.
const MAKER: &str = "/dev/pts/ptmx";
const FLAGS: OFlags = OFlags::RDWR.union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// The guest's ends.
#[derive(Debug)]
pub(super) struct GuestEnds {
    pub(super) stdout: OwnedFd,
    /// A terminal has no stream of its own for errors.
    pub(super) stderr: Option<OwnedFd>,
    pub(super) feed: Feed,
}

/// The command's ends.
#[derive(Debug)]
pub(super) struct CommandEnds {
    pub(super) stdin: Option<OwnedFd>,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    /// The terminal again, for the warden: while it is open somewhere, a command can close its own
    /// ends and open them again.
    pub(super) terminal: Option<OwnedFd>,
}

impl CommandEnds {
    pub(super) fn raw(&self) -> impl Iterator<Item = RawFd> {
        let optional = self.stdin.iter().chain(&self.terminal);
        optional
            .chain([&self.stdout, &self.stderr])
            .map(AsRawFd::as_raw_fd)
    }
}

/// Makes pipes.
pub(super) fn pipes(input: bool) -> cellblock_jail::Result<(GuestEnds, CommandEnds)> {
    let pipe = || pipe_with(PipeFlags::CLOEXEC).during("make a pipe");
    let (stdout, stdout_in) = pipe()?;
    let (stderr, stderr_in) = pipe()?;
    let (stdin, feed) = Feed::new(input)?;
    let guest = GuestEnds {
        stdout,
        stderr: Some(stderr),
        feed,
    };
    let command = CommandEnds {
        stdin,
        stdout: stdout_in,
        stderr: stderr_in,
        terminal: None,
    };
    Ok((guest, command))
}

/// Makes a terminal.
pub(super) fn terminal(size: TerminalSize) -> cellblock_jail::Result<(GuestEnds, CommandEnds)> {
    // The guest must not wait for a command that does not read.
    let ours =
        open(MAKER, FLAGS | OFlags::NONBLOCK, Mode::empty()).during_on("make a terminal with", MAKER)?;
    unlockpt(&ours).during("unlock a terminal")?;
    resize(&ours, size).during("set the size of a terminal")?;
    let name = ptsname(&ours, Vec::new()).during("find a terminal")?;
    let theirs = open(&name, FLAGS, Mode::empty()).during_on("open", name.to_string_lossy().as_ref())?;
    let copy = |of: &OwnedFd| fcntl_dupfd_cloexec(of, 3).during("duplicate a terminal");
    let guest = GuestEnds {
        feed: Feed::terminal(copy(&ours)?),
        stdout: ours,
        stderr: None,
    };
    let command = CommandEnds {
        stdin: Some(copy(&theirs)?),
        stdout: copy(&theirs)?,
        stderr: copy(&theirs)?,
        terminal: Some(theirs),
    };
    Ok((guest, command))
}

/// Changes the size of a terminal. Its foreground processes get SIGWINCH.
pub(super) fn resize(terminal: &OwnedFd, size: TerminalSize) -> rustix::io::Result<()> {
    let size = Winsize {
        ws_row: size.rows,
        ws_col: size.columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(terminal, size)
}
