//! A command in the room: confined like a kernel, in its own process group, supervised by a warden,
//! and ended with everything that it started.

use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use cellblock_jail::error::SyscallResult;
use cellblock_jail::fds;
use cellblock_jail::process::{Child, execute};
use cellblock_protocol::TerminalSize;
use rustix::fs::{Mode, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Signal;

use super::feed::Feed;
use super::log::Log;
use super::streams::{self, CommandEnds, GuestEnds};
use super::warden::{self, END_LIMIT, Ends, WardenVerdict};

/// Extra time that a warden gets before the guest itself ends the command.
const WARDEN_GRACE: Duration = END_LIMIT.saturating_mul(2);

/// A requested command.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) argv: Vec<String>,
    pub(super) cwd: PathBuf,
    pub(super) env: Vec<(String, String)>,
    pub(super) timeout: Duration,
    /// Whether it reads what the host sends.
    pub(super) input: bool,
    /// Size of its terminal, if it has one.
    pub(super) terminal: Option<TerminalSize>,
}

/// A command that is ready to start.
#[derive(Debug)]
pub(super) struct Start {
    argv: Vec<CString>,
    environment: Vec<CString>,
    cwd: PathBuf,
}

/// A command that runs, or that has ended but has unread output.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) number: u64,
    /// The warden.
    child: Child,
    pub(super) stdout: Option<OwnedFd>,
    pub(super) stderr: Option<OwnedFd>,
    pub(super) feed: Feed,
    /// Log of its output; otherwise the output is sent.
    pub(super) log: Option<Log>,
    control: Option<OwnedFd>,
    verdict: OwnedFd,
    /// Deadline of the warden to end the command.
    deadline: Option<Instant>,
    pub(super) ended: Option<CommandExit>,
    /// Whether the host knows its end.
    pub(super) reported: bool,
}

/// End of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommandExit {
    /// The warden reported it.
    Told(WardenVerdict),
    /// The warden was killed, so processes of the command may still run.
    Untold,
}

impl Command {
    /// Starts the command.
    pub(super) fn start(
        number: u64,
        order: &Order,
        rules: Option<BorrowedFd<'_>>,
    ) -> cellblock_jail::Result<Self> {
        let pipe = || pipe_with(PipeFlags::CLOEXEC).during("make a pipe");
        let (ours, streams) = match order.terminal {
            Some(size) => streams::terminal(size),
            None => streams::pipes(order.input),
        }?;
        let GuestEnds { stdout, stderr, feed } = ours;
        let (control_out, control) = pipe()?;
        let (verdict, verdict_in) = pipe()?;
        // A stopped warden must not stop the guest.
        rustix::fs::fcntl_setfl(&control, OFlags::NONBLOCK).during("set up a pipe")?;
        let ends = Ends {
            streams,
            control: control_out,
            verdict: verdict_in,
        };
        let child = warden::start(Start::new(order)?, ends, rules, order.timeout)?;
        Ok(Self {
            number,
            child,
            stdout: Some(stdout),
            stderr,
            feed,
            log: None,
            control: Some(control),
            verdict,
            deadline: Instant::now()
                .checked_add(order.timeout)
                .and_then(|deadline| deadline.checked_add(WARDEN_GRACE)),
            ended: None,
            reported: false,
        })
    }

    /// Returns the warden's process.
    pub(super) fn warden(&self) -> i32 {
        self.child.pid
    }

    /// Returns the time until the guest itself ends the command.
    pub(super) fn left(&self) -> Option<Duration> {
        self.deadline
            .map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Sends a signal to the command's process group. SIGKILL ends it with everything that it
    /// started.
    pub(super) fn signal(&mut self, signal: Signal) {
        if signal == Signal::KILL {
            self.control = None;
        } else if let (Some(control), Ok(signal)) = (&self.control, u8::try_from(signal.as_raw())) {
            let _ = rustix::io::write(control, &[signal]);
        }
    }

    /// Kills a warden that has not ended its command in time.
    pub(super) fn give_up(&mut self) {
        self.deadline = None;
        self.child.kill();
    }

    /// Reads the verdict of a warden that has ended.
    pub(super) fn hear_end(&mut self) {
        let mut said = [0; WardenVerdict::LEN];
        self.ended = Some(match rustix::io::read(&self.verdict, &mut said) {
            Ok(WardenVerdict::LEN) => CommandExit::Told(WardenVerdict::from_bytes(said)),
            _ => CommandExit::Untold,
        });
        self.feed = Feed::default();
    }

    /// Returns the command's end after its last output.
    pub(super) fn is_over(&self) -> Option<CommandExit> {
        self.ended
            .filter(|_| self.stdout.is_none() && self.stderr.is_none())
    }

    /// Returns the pipes that are still open.
    pub(super) fn pipes(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.stdout.iter().chain(&self.stderr).map(AsFd::as_fd)
    }
}

impl Start {
    fn new(order: &Order) -> cellblock_jail::Result<Self> {
        let text = |text: &str| {
            CString::new(text)
                .map_err(|_| cellblock_jail::Error::Child("command contains a NUL character".into()))
        };
        Ok(Self {
            argv: order
                .argv
                .iter()
                .map(|argument| text(argument))
                .collect::<Result<_, _>>()?,
            environment: order
                .env
                .iter()
                .map(|(key, value)| text(&format!("{key}={value}")))
                .collect::<Result<_, _>>()?,
            cwd: order.cwd.clone(),
        })
    }

    /// Becomes the command; called in a process cloned for it.
    pub(super) fn become_it(
        &self,
        streams: CommandEnds,
        rules: Option<BorrowedFd<'_>>,
    ) -> cellblock_jail::Result<()> {
        let CommandEnds {
            stdin,
            stdout,
            stderr,
            terminal,
        } = streams;
        let stdin = match stdin {
            Some(stdin) => stdin,
            None => rustix::fs::open("/dev/null", OFlags::RDONLY, Mode::empty()).during("open /dev/null")?,
        };
        fds::place(stdin, 0)?;
        fds::place(stdout, 1)?;
        fds::place(stderr, 2)?;
        let keep: Vec<_> = rules.iter().map(AsRawFd::as_raw_fd).collect();
        fds::close_all_but(&keep)?;
        rustix::process::setsid().during("make a session")?;
        if terminal.is_some() {
            rustix::process::ioctl_tiocsctty(rustix::stdio::stdin()).during("take the terminal")?;
        }
        rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::Dumpable)
            .during("make the command dumpable")?;
        cellblock_jail::process::default_signals();
        rustix::process::chdir(&self.cwd).during_on("enter", &self.cwd)?;
        if let Some(rules) = rules {
            cellblock_jail::landlock::join(rules)?;
        }
        search_and_execute(&self.argv, &self.environment)
    }
}

/// Replaces the process image; a bare name is searched along the command's own `PATH`. Never
/// returns.
fn search_and_execute(argv: &[CString], environment: &[CString]) -> cellblock_jail::Result<()> {
    let mut failure = std::io::Error::from_raw_os_error(libc::ENOENT);
    for program in candidates(&argv[0], environment) {
        let error = execute(&program, argv, environment);
        if error.kind() != std::io::ErrorKind::NotFound {
            failure = error;
        }
    }
    let code = if failure.kind() == std::io::ErrorKind::NotFound {
        127
    } else {
        126
    };
    let message = format!("{}: {failure}\n", argv[0].to_string_lossy());
    let _ = rustix::io::write(rustix::stdio::stderr(), message.as_bytes());
    // SAFETY: _exit runs none of the guest's destructors; the codes are those of a shell.
    unsafe { libc::_exit(code) }
}

fn candidates(program: &CString, environment: &[CString]) -> Vec<CString> {
    let name = program.to_bytes();
    if name.contains(&b'/') {
        return vec![program.clone()];
    }
    let path = environment
        .iter()
        .find_map(|variable| variable.to_bytes().strip_prefix(b"PATH="))
        .unwrap_or_default();
    path.split(|byte| *byte == b':')
        .filter_map(|dir| CString::new([dir, b"/", name].concat()).ok())
        .collect()
}
