//! The process of a server: in a group of its own, with little of our environment, and gone with everything that it started.

use std::process::Stdio;
use std::sync::Arc;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, BufReader};
use tokio::process::{Child, Command};

use super::Program;
use super::lines::{Line, Lines};
use super::transport::Stdio as Transport;
use crate::failure::Failure;
use crate::wire::Wire;
use crate::words;

/// What a server gets of our environment. Everything else may be a secret of somebody else.
const INHERITED: [&str; 9] = [
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ",
];

/// Bytes of a line of stderr.
const STDERR_LINE: usize = 64 << 10;
/// Characters of it in the log.
const LOGGED: usize = 1000;

/// Starts a server.
pub(crate) fn start(program: &Program, label: &str, wire: Arc<Wire>) -> Result<Transport, Failure> {
    let failed = |error: std::io::Error| Failure::NotStarted(Arc::new(error));
    let Some((first, arguments)) = program.command.split_first() else {
        return Err(failed(std::io::Error::other("its command is empty")));
    };
    let inherited = INHERITED
        .into_iter()
        .filter_map(|name| Some((name, std::env::var_os(name)?)));
    let mut child = Command::new(first)
        .args(arguments)
        .env_clear()
        .envs(inherited)
        .envs(program.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    // Made before anything can fail, so that it is ended on every path.
    let process = Process::new(child);
    let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
        return Err(failed(std::io::Error::other("its streams are not there")));
    };
    tokio::spawn(log(stderr, label.to_owned()));
    Ok(Transport::new(process, stdin, stdout, wire))
}

/// Tells what a server says of itself, a bounded line each.
async fn log(stderr: impl AsyncRead + Unpin, label: String) {
    let mut lines = Lines::new(BufReader::new(stderr), STDERR_LINE);
    loop {
        match lines.next().await {
            Ok(Line::Whole(line)) => {
                let line = words::told(&String::from_utf8_lossy(&line), LOGGED);
                tracing::info!(target: "cellblock::mcp_server", server = label, "{line}");
            }
            // The rest of it begins a line of its own.
            Ok(Line::TooLong) => {}
            Ok(Line::End) | Err(_) => return,
        }
    }
}

/// A process with everything that it started. Dropped, all of it is killed.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    /// While the child was not waited for, the number is that of no other group.
    group: Option<Pid>,
}

impl Process {
    fn new(child: Child) -> Self {
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Self { child, group }
    }

    /// Kills what is left, and waits for the process.
    pub(super) async fn end(&mut self) -> Option<std::process::ExitStatus> {
        self.kill();
        self.child.wait().await.ok()
    }

    fn kill(&mut self) {
        if let Some(group) = self.group.take() {
            // An error means that nothing is left of it.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
