//! One command in the room: started in a process group of its own, confined as a kernel is, killed whole.

use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use cellblock_jail::error::During;
use cellblock_jail::fds;
use cellblock_jail::process::{Child, execute, spawn};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process_group};

/// What to run.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) argv: Vec<String>,
    pub(super) cwd: PathBuf,
    pub(super) env: Vec<(String, String)>,
    pub(super) timeout: Duration,
}

/// A command that runs, or has ended with output still to be read.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) number: u64,
    pub(super) pid: i32,
    child: Child,
    pub(super) stdout: Option<OwnedFd>,
    pub(super) stderr: Option<OwnedFd>,
    deadline: Instant,
    pub(super) timed_out: bool,
    pub(super) status: Option<i32>,
}

impl Command {
    /// Starts it.
    pub(super) fn start(
        number: u64,
        order: &Order,
        rules: Option<BorrowedFd<'_>>,
    ) -> cellblock_jail::Result<Self> {
        let (stdout, stdout_in) = pipe_with(PipeFlags::CLOEXEC).during("make a pipe")?;
        let (stderr, stderr_in) = pipe_with(PipeFlags::CLOEXEC).during("make a pipe")?;
        let rules = rules
            .map(|fd| rustix::io::fcntl_dupfd_cloexec(fd, 3))
            .transpose()
            .during("keep the rules")?;
        let text = |text: &str| {
            CString::new(text)
                .map_err(|_| cellblock_jail::Error::Child("a command has a NUL character".into()))
        };
        let argv = order
            .argv
            .iter()
            .map(|argument| text(argument))
            .collect::<Result<Vec<_>, _>>()?;
        let environment = order
            .env
            .iter()
            .map(|(key, value)| text(&format!("{key}={value}")))
            .collect::<Result<Vec<_>, _>>()?;
        let cwd = order.cwd.clone();
        let child = spawn(0, None, move || {
            let null = rustix::fs::open("/dev/null", rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty())
                .during("open /dev/null")?;
            fds::place(null, 0)?;
            fds::place(stdout_in, 1)?;
            fds::place(stderr_in, 2)?;
            let keep: Vec<_> = rules.iter().map(AsRawFd::as_raw_fd).collect();
            fds::close_all_but(&keep)?;
            rustix::process::setsid().during("make a session")?;
            rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::Dumpable)
                .during("make the command dumpable")?;
            rustix::process::chdir(&cwd).during_on("enter", &cwd)?;
            if let Some(rules) = &rules {
                cellblock_jail::rules::join(rules.as_fd())?;
            }
            search_and_execute(&argv, &environment)
        })
        .during("start the command")?;
        Ok(Self {
            number,
            pid: child.pid,
            child,
            stdout: Some(stdout),
            stderr: Some(stderr),
            deadline: Instant::now() + order.timeout,
            timed_out: false,
            status: None,
        })
    }

    /// Time left until the deadline.
    pub(super) fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Kills its whole process group.
    pub(super) fn kill(&self) {
        if let Some(pid) = Pid::from_raw(self.pid) {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        self.child.kill();
    }

    /// Whether nothing more will come of it.
    pub(super) fn is_over(&self) -> bool {
        self.status.is_some() && self.stdout.is_none() && self.stderr.is_none()
    }

    /// The pipes that are still open.
    pub(super) fn pipes(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.stdout.iter().chain(&self.stderr).map(AsFd::as_fd)
    }
}

/// Replaces the process image, looking for a bare name along the command's own `PATH`. Never returns.
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
    // SAFETY: _exit runs nothing of the guest's copy; the codes are those of a shell.
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
