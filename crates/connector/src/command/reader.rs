//! Output of a program, read within limits.

use std::io;
use std::time::Duration;

use cellblock_interpreter::connector::{Blob, ConnectorError, ConnectorErrorKind, FetchAnswer, LARGE_ANSWER};
use cellblock_settings::Size;
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::ChildStdout;
use tokio::task::spawn_blocking;

use super::calls::{Calls, FetchOutcome};
use super::message::{Reply, ReplyBody};
use crate::process::{Line, Lines, Process};

/// Maximum size of a line around its answer.
const AROUND: u64 = 64 << 10;
/// A larger table is kept in a file.
const MEMORY: u64 = 1 << 20;
/// Maximum time for a program to exit after it has closed its stdout.
const GRACE: Duration = Duration::from_secs(1);

/// Reads answers and gives them to their callers until the program ends or breaks the protocol; then
/// fails all calls.
pub(super) async fn answers(mut process: Process, stdout: ChildStdout, max_result: u64, calls: &Calls) {
    let limit = usize::try_from(max_result.saturating_add(AROUND)).unwrap_or(usize::MAX);
    let mut lines = Lines::new(BufReader::with_capacity(64 << 10, stdout), limit);
    let broken = loop {
        match next(&mut lines, max_result, calls).await {
            Ok(true) => {}
            Ok(false) => break None,
            Err(why) => break Some(why),
        }
    };
    let (kind, why) = match broken {
        Some(why) => (ConnectorErrorKind::Parse, why),
        None => (
            ConnectorErrorKind::Provider { status: None },
            exited(&process).await,
        ),
    };
    let text = format!("the command {why}; it was ended, and is started again for the next call");
    process.kill();
    // Before it is reaped: a call that came meanwhile would fail for the fault of another.
    calls.end(ConnectorError::new(kind, text));
    process.end().await;
}

/// Reads an answer; returns whether there was one. The error continues a sentence that starts with
/// the program.
async fn next(
    lines: &mut Lines<BufReader<ChildStdout>>,
    max_result: u64,
    calls: &Calls,
) -> Result<bool, String> {
    let line = match lines.next().await {
        Ok(Line::Whole(line)) => line,
        Ok(Line::TooLong) => return Err(too_large(max_result)),
        Ok(Line::End) | Err(_) => return Ok(false),
    };
    if line.iter().all(u8::is_ascii_whitespace) {
        return Ok(true);
    }
    let Reply { id, body } = if line.len() > LARGE_ANSWER {
        spawn_blocking(move || Reply::unread(line))
            .await
            .map_err(|_| "printed a line that cannot be read".to_owned())??
    } else {
        Reply::read(&line)?
    };
    if !calls.is_open(id) {
        return Err(format!(
            "answered the request {id}, which it does not have; each request has one answer, with its `id`"
        ));
    }
    let answer = match body {
        ReplyBody::Answer(answer) => answer,
        ReplyBody::Arrow(length) => table(lines.rest(), length, max_result).await?,
    };
    calls.answer(id, answer);
    Ok(true)
}

/// Reads an Arrow IPC stream. One that is too large is skipped, because other answers follow it.
async fn table(
    stdout: &mut BufReader<ChildStdout>,
    length: u64,
    max_result: u64,
) -> Result<FetchOutcome, String> {
    let mut frame = stdout.take(length);
    let fits = length <= max_result;
    let kept = if !fits {
        let skipped = tokio::io::copy(&mut frame, &mut tokio::io::sink()).await;
        skipped.map(|read| (read, None))
    } else if length <= MEMORY {
        let mut bytes = Vec::new();
        let read = frame.read_to_end(&mut bytes).await;
        read.map(|read| (read as u64, Some(bytes.into())))
    } else {
        spilled(frame, length).await
    };
    match kept {
        Ok((read, _)) if read < length => Err(format!(
            "announced an Arrow IPC stream of {length} bytes and closed its stdout after {read}"
        )),
        Ok((_, Some(stream))) => Ok(Ok(FetchAnswer::Arrow(stream))),
        Ok((_, None)) => {
            let text = format!("the command {}", too_large(max_result));
            Ok(Err(ConnectorError::provider(text)))
        }
        Err(error) => Err(format!("sent an Arrow IPC stream that cannot be kept: {error}")),
    }
}

async fn spilled(
    mut frame: impl tokio::io::AsyncRead + Unpin,
    length: u64,
) -> io::Result<(u64, Option<Blob>)> {
    let mut file = File::from_std(tempfile::tempfile()?);
    let read = tokio::io::copy(&mut frame, &mut file).await?;
    file.flush().await?;
    Ok((read, Some(Blob::File(file.into_std().await, length))))
}

fn too_large(max_result: u64) -> String {
    let limit = Size(max_result);
    format!("returned more than {limit}, the limit `max_result`; request less, such as fewer rows or columns")
}

/// Says how a program closed its stdout.
async fn exited(process: &Process) -> String {
    let exits = async {
        while !process.has_exited() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    if tokio::time::timeout(GRACE, exits).await.is_ok() {
        "exited before it answered; the log has what it printed to stderr".to_owned()
    } else {
        "closed its stdout before it answered".to_owned()
    }
}
