//! A process with its standard output and its standard error apart, as they come.
//!
//! A session's process has one sequence of output. So its error stream goes to a named pipe, which a second process copies to its own
//! output.

use std::collections::BTreeMap;
use std::time::Duration;

use cellblock_interpreter::session::processes::{MAX_WAIT, ProcessOrder, ProcessReport, ProcessSignal};
use cellblock_interpreter::{Error, Session, mint};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Reads the pipe, whose path is its argument.
const READER: &str = r#"mkfifo -- "$0" && exec cat -- "$0""#;
/// Waits for the pipe, and becomes the program with its error stream in it.
const PROGRAM: &str = r#"while [ ! -p "$0" ]; do sleep 0.01; done; exec 2>"$0"; rm -f -- "$0"; exec "$@""#;
/// Number of bytes that are read at once.
const PART: u64 = 64 * 1024;
/// How long a read waits for output.
const QUIET: Duration = Duration::from_secs(20);
/// How long the error stream is read after the end of the program: something that it started may hold it open.
const AFTERWARDS: Duration = Duration::from_millis(500);
/// Pause after an answer without output, which comes early if too many requests wait.
const PAUSE: Duration = Duration::from_millis(10);

/// Parts of output that wait for their reader; beyond that they stay in the sandbox.
const WAITING: usize = 8;

/// A process whose streams are apart.
#[derive(Debug)]
pub(crate) struct SplitProcess {
    session: Session,
    /// Id of the program.
    pub(crate) id: String,
    /// Id of what copies its error stream.
    reader: String,
    /// What it writes; nothing any more when it has ended.
    pub(crate) output: mpsc::Receiver<(Side, Vec<u8>)>,
}

/// One of the two streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl SplitProcess {
    /// Starts a program.
    pub(crate) async fn start(session: &Session, order: ProcessOrder) -> Result<Self, Error> {
        let pipe = mint("/tmp/.stderr-");
        let shell = |script: &str| ["/bin/sh", "-c", script, &pipe].map(str::to_owned).to_vec();
        let reader = ProcessOrder {
            command: shell(READER),
            ..ProcessOrder::default()
        };
        let processes = session.processes();
        let reader = processes.start(reader).await?.id;
        let mut command = shell(PROGRAM);
        command.extend(order.command);
        let id = match processes.start(ProcessOrder { command, ..order }).await {
            Ok(program) => program.id,
            Err(error) => {
                let _ = processes.signal(&reader, ProcessSignal::KILL).await;
                return Err(error);
            }
        };
        let (sender, output) = mpsc::channel(WAITING);
        let ended = CancellationToken::new();
        let stdout = copy(session.clone(), id.clone(), Side::Stdout, sender.clone());
        let stderr = copy(session.clone(), reader.clone(), Side::Stderr, sender);
        let (over, copier, of) = (ended.clone(), reader.clone(), session.clone());
        tokio::spawn(async move {
            stdout.await;
            over.cancel();
        });
        tokio::spawn(async move {
            let late = async {
                ended.cancelled().await;
                tokio::time::sleep(AFTERWARDS).await;
            };
            tokio::select! {
                () = stderr => {}
                () = late => {
                    let _ = of.processes().signal(&copier, ProcessSignal::KILL).await;
                }
            }
        });
        Ok(Self {
            session: session.clone(),
            id,
            reader,
            output,
        })
    }

    /// Waits for its end, of which its output is the sign.
    pub(crate) async fn end(&self) -> Result<ProcessReport, Error> {
        self.session.processes().wait(&self.id, MAX_WAIT).await
    }

    /// Ends it and everything that it started.
    pub(crate) async fn kill(&self) {
        for id in [&self.id, &self.reader] {
            // It may have ended.
            let _ = self.session.processes().signal(id, ProcessSignal::KILL).await;
        }
    }
}

/// Sends what a process writes, until it ends or nobody reads it.
async fn copy(session: Session, id: String, side: Side, to: mpsc::Sender<(Side, Vec<u8>)>) {
    let mut offset = 0;
    loop {
        // An error is the end of the sandbox, which the state of the process says.
        let Ok(part) = session.processes().output(&id, offset, PART, QUIET).await else {
            return;
        };
        offset = part.next;
        let nothing = part.bytes.is_empty();
        if !nothing && to.send((side, part.bytes)).await.is_err() || part.eof {
            return;
        }
        if nothing {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// An order of a command that a shell reads.
pub(crate) fn shell_order(
    command: &str,
    directory: Option<String>,
    env: BTreeMap<String, String>,
) -> ProcessOrder {
    ProcessOrder {
        command: ["bash", "-c", command].map(str::to_owned).to_vec(),
        directory,
        env,
        ..ProcessOrder::default()
    }
}
