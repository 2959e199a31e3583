//! The process of a server, in its own process group, with little of our environment, and ended
//! with everything that it started.

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

/// Variables that a server inherits. All others may be secrets.
const INHERITED: [&str; 9] = [
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ",
];

/// Maximum length of a line of stderr in bytes.
const STDERR_LINE: usize = 64 << 10;
/// Maximum length of a log entry in characters.
const LOGGED: usize = 1000;

/// Starts a server.
pub(crate) fn start(program: &Program, label: &str, wire: Arc<Wire>) -> Result<Transport, Failure> {
    let failed = |error: std::io::Error| Failure::NotStarted(Arc::new(error));
    let Some((first, arguments)) = program.command.split_first() else {
        return Err(failed(std::io::Error::other("the command is empty")));
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
    // Created before anything can fail, so that the process is ended on every path.
    let process = Process::new(child);
    let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
        return Err(failed(std::io::Error::other("the process has no streams")));
    };
    tokio::spawn(log(stderr, label.to_owned()));
    Ok(Transport::new(process, stdin, stdout, wire))
}

/// Logs a server's stderr, line by line and limited.
async fn log(stderr: impl AsyncRead + Unpin, label: String) {
    let mut lines = Lines::new(BufReader::new(stderr), STDERR_LINE);
    loop {
        match lines.next().await {
            Ok(Line::Whole(line)) => {
                let line = words::told(&String::from_utf8_lossy(&line), LOGGED);
                tracing::info!(target: "cellblock::mcp_server", server = label, "{line}");
            }
            // The rest of it is logged as another line.
            Ok(Line::TooLong) => {}
            Ok(Line::End) | Err(_) => return,
        }
    }
}

/// A process with everything that it started. Dropping it kills all of it.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    /// As long as the child was not reaped, no other group has this number.
    group: Option<Pid>,
}

impl Process {
    fn new(child: Child) -> Self {
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Self { child, group }
    }

    /// Kills the remaining processes, and waits for the main one.
    pub(super) async fn end(&mut self) -> Option<std::process::ExitStatus> {
        self.kill();
        self.child.wait().await.ok()
    }

    fn kill(&mut self) {
        if let Some(group) = self.group.take() {
            // An error means that none remains.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
