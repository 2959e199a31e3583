//! The host's side of a machine's owner: the process that ends a machine with its host.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use cellblock_guest::machine::{MachineOrder, NAME, SideCommand, SideCommandEnd};
use cellblock_sandbox::jail::error::chain;
use cellblock_sandbox::jail::fds;
use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::Command;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Line of a template that can be written to a snapshot.
const READY: &str = "ready";
/// Maximum number of bytes that are kept of what a machine's program prints: the last ones.
const KEPT: usize = 8 * 1024;
/// Time for which these are waited for once the machine has ended.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A machine that runs. Dropping it ends the machine and releases everything that it holds.
#[derive(Debug)]
pub(crate) struct MachineOwner {
    control: Arc<OwnedFd>,
    /// Held from a command until its answer, also when nobody waits for that any more: the next
    /// command must not take it for its own.
    asking: Arc<Mutex<()>>,
    printed: watch::Receiver<MachineOutput>,
    ended: watch::Receiver<bool>,
}

/// Output of a machine and its program.
#[derive(Debug, Default)]
struct MachineOutput {
    last: String,
    /// Whether a template has said that it is ready to be saved. A kernel on a busy host may say a
    /// lot before and after.
    ready: bool,
}

impl MachineOwner {
    /// Starts the owner and its machine.
    pub(crate) fn start(executable: &Path, machine: &MachineOrder) -> Result<Self, String> {
        let (ours, theirs) = fds::packet_pair().map_err(|error| chain(&error))?;
        let mut command = Command::new(executable);
        command
            .arg0(NAME)
            .env_clear()
            .stdin(theirs)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let spawned = command.spawn();
        // The command keeps a copy of the owner's socket, which would hide the owner's death.
        drop(command);
        let mut child = spawned.map_err(|error| format!("start `{}`: {error}", executable.display()))?;
        fds::send(&ours, machine, &[]).map_err(|error| chain(&error))?;
        let printed = Arc::new(watch::channel(MachineOutput::default()).0);
        let mut reading = JoinSet::new();
        if let Some(stdout) = child.stdout.take() {
            reading.spawn(keep(stdout, Arc::clone(&printed)));
        }
        if let Some(stderr) = child.stderr.take() {
            reading.spawn(keep(stderr, Arc::clone(&printed)));
        }
        let (end, ended) = watch::channel(false);
        let receiver = printed.subscribe();
        tokio::spawn(async move {
            let _ = child.wait().await;
            // Its last words say why. What outlives it may keep the pipes open.
            let read = async { while reading.join_next().await.is_some() {} };
            let _ = timeout(LAST_WORDS, read).await;
            end.send_replace(true);
        });
        Ok(Self {
            control: Arc::new(ours),
            asking: Arc::default(),
            printed: receiver,
            ended,
        })
    }

    /// Completes when a template has imported the image's libraries.
    pub(crate) async fn ready(&self) -> Result<(), String> {
        let mut printed = self.printed.clone();
        tokio::select! {
            seen = printed.wait_for(|printed| printed.ready) => {
                seen.map(drop).map_err(|_| self.last_words())
            }
            () = self.ended() => Err(self.last_words()),
        }
    }

    /// Ends the machine.
    pub(crate) fn end(&self) {
        // The owner notices; there is nothing to do if it has ended already.
        let _ = rustix::net::shutdown(&*self.control, rustix::net::Shutdown::Both);
    }

    /// Completes when the machine has ended and everything is released.
    pub(crate) async fn ended(&self) {
        let mut ended = self.ended.clone();
        let _ = ended.wait_for(|ended| *ended).await;
    }

    /// Returns what the machine and its program printed.
    pub(crate) fn last_words(&self) -> String {
        self.printed.borrow().last.trim().to_owned()
    }

    /// Runs a command beside the machine's program, in the same namespaces.
    pub(crate) async fn run(&self, command: Vec<String>) -> Result<(), String> {
        let (control, asking) = (Arc::clone(&self.control), Arc::clone(&self.asking));
        let name = command.join(" ");
        let status = tokio::task::spawn_blocking(move || {
            let _asking = asking.lock();
            fds::send(&*control, &SideCommand(command), &[])?;
            fds::receive::<SideCommandEnd>(&*control)
        })
        .await
        .map_err(|error| error.to_string())?
        .map_err(|error| chain(&error))?;
        match status {
            Some((SideCommandEnd(0), _)) => Ok(()),
            Some((SideCommandEnd(status), _)) => Err(format!(
                "`{name}` ended with the wait status {status}: {}",
                self.last_words()
            )),
            None => Err(format!(
                "the machine ended during `{name}`: {}",
                self.last_words()
            )),
        }
    }
}

/// Keeps the last bytes of an output, and logs its lines.
async fn keep(output: impl AsyncRead + Unpin, kept: Arc<watch::Sender<MachineOutput>>) {
    let mut lines = BufReader::new(output).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        tracing::debug!(target: "cellblock::machine", "{line}");
        kept.send_modify(|printed| {
            printed.ready |= line == READY;
            printed.last.push_str(&line);
            printed.last.push('\n');
            let surplus = printed.last.len().saturating_sub(KEPT);
            let surplus = printed.last.ceil_char_boundary(surplus);
            printed.last.drain(..surplus);
        });
    }
}
