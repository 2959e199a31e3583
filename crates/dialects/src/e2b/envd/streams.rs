//! A process with two streams of output.
//!
//! A session keeps the output of a process as one sequence. To tell its error stream apart, a second process reads that from a pipe with a
//! name:
//!
//! ```text
//! command ── stdout ──────────────────> kept output of the command
//!    └────── stderr ──> FIFO ──> cat ──> kept output of `cat`
//! ```

use std::time::Duration;

use cellblock_interpreter::mint;
use cellblock_interpreter::session::processes::{
    MAX_WAIT, ProcessOrder, ProcessReport, ProcessSignal, ProcessState, Processes,
};

use super::connect::{Called, Fault};
use super::follow::Parts;

/// Makes the pipe, says so, and reads it; or says that the command's directory is missing.
const READER: &str = r#"[ -d "$1" ] || { printf d; exit; }; mkfifo -m 600 "$0" && echo && exec cat "$0""#;
/// Opens the pipe, removes its name, and becomes the command.
const WRITER: &str = r#"exec 2>"$0" && rm -f "$0" && exec "$@""#;
/// How long the pipe may take to be made.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of output in one message.
const PART: u64 = 32 * 1024;
/// Pause after an answer without output, which comes early if too many requests wait.
const PAUSE: Duration = Duration::from_millis(5);

/// A process with the one that reads its error stream.
#[derive(Debug)]
pub(super) struct Split {
    pub(super) process: ProcessReport,
    pub(super) stderr: String,
}

/// Number of bytes that the reader writes before those of the stream.
pub(super) const READY: u64 = 1;

/// Starts a program with two streams.
pub(super) async fn start(processes: Processes<'_>, mut order: ProcessOrder) -> Called<Split> {
    let pipe = format!("/tmp/.cellblock/{}", mint("e2b-"));
    let place = order.directory.clone().unwrap_or_default();
    let reader = ProcessOrder {
        command: shell(READER, &pipe, vec![place.clone()]),
        directory: Some("/".to_owned()),
        ..ProcessOrder::default()
    };
    let stderr = processes.start(reader).await?.id;
    let ready = processes.output(&stderr, 0, READY, PATIENCE).await?;
    if ready.bytes == b"d" {
        return Err(Fault::invalid(format!("cwd '{place}' does not exist")));
    }
    if ready.bytes != b"\n" {
        kill(processes, &stderr).await;
        let message = "commands need the programs `sh`, `mkfifo`, `cat` and `rm` in the server's image";
        return Err(Fault::new("unimplemented", message));
    }
    order.command = shell(WRITER, &pipe, order.command);
    match processes.start(order).await {
        Ok(process) => Ok(Split { process, stderr }),
        Err(error) => {
            kill(processes, &stderr).await;
            Err(error.into())
        }
    }
}

fn shell(script: &str, pipe: &str, command: Vec<String>) -> Vec<String> {
    let mut all = vec![
        "/bin/sh".to_owned(),
        "-c".to_owned(),
        script.to_owned(),
        pipe.to_owned(),
    ];
    all.extend(command);
    all
}

pub(super) async fn kill(processes: Processes<'_>, id: &str) {
    // It may have ended.
    let _ = processes.signal(id, ProcessSignal::KILL).await;
}

/// Sends output from an offset to its end, until nobody takes it.
pub(super) async fn follow(
    processes: Processes<'_>,
    id: &str,
    mut offset: u64,
    to: &Parts<'_>,
) -> Called<()> {
    loop {
        let part = processes.output(id, offset, PART, MAX_WAIT).await?;
        offset = part.next;
        let is_empty = part.bytes.is_empty();
        if !is_empty && !to.send(&part.bytes).await {
            return Ok(());
        }
        if part.eof {
            return Ok(());
        }
        if is_empty {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Returns how much a process has written.
pub(super) async fn written(processes: Processes<'_>, id: &str) -> Called<u64> {
    Ok(processes.output(id, 0, 0, Duration::ZERO).await?.total)
}

/// Waits for the end of a process.
pub(super) async fn ended(processes: Processes<'_>, id: &str) -> Called<ProcessReport> {
    loop {
        let report = processes.wait(id, MAX_WAIT).await?;
        if report.state != ProcessState::Running {
            return Ok(report);
        }
    }
}
