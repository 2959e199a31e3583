//! Runs one request in a sandbox of its own, which is disposed of whatever happens.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Seek as _, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cellblock_interpreter::cell::Rescue;
use cellblock_interpreter::error::Blame;
use cellblock_interpreter::execution::SkippedFile;
use cellblock_interpreter::session::{CommandEnd, ProgramRun, SandboxProgram, SessionOptions};
use cellblock_interpreter::{Error, Interpreter, Session};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::request::{Job, OUTPUT, SCRIPT};
use crate::options::ExecuteOptions;
use crate::state::Gateway;

/// Directory in which the program starts, as it had a separate folder in the original.
const FOLDER: &str = "/workspace";
/// Additional folder for results, which all our other tools also collect.
const USUAL_OUTPUT: &str = "/tmp/output";
/// The code of what did not end by itself.
const NO_CODE: i32 = -1;
/// Number that a shell adds to the number of a signal.
const BY_SIGNAL: i32 = 128;
const KILL: i32 = 9;
/// Result of a program.
#[derive(Debug, Default, Serialize, utoipa::ToSchema)]
pub(crate) struct ExecuteAnswer {
    /// `success` if it exited with 0, otherwise `error`.
    status: &'static str,
    /// Output to stdout. Above 10,000,000 bytes, a line replaces the middle.
    stdout: String,
    /// Output to stderr, truncated in the same way, followed by notes such as a timeout.
    stderr: String,
    /// Exit code; 128 + n if signal n killed the program; -1 if it timed out or packages could not
    /// be installed.
    exit_code: i32,
    /// Duration in milliseconds.
    execution_time_ms: u64,
    /// Files in `$OUTPUT_DIR` and `/tmp/output`: base64 by name, with slashes for folders. Omitted
    /// if there are none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    files_produced: BTreeMap<String, String>,
    /// Files there that are not in `files_produced`, with reasons. Omitted if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>)]
    files_skipped: Vec<SkippedFile>,
}

/// Runs it, unless it is given up before its end. Completes when its sandbox is gone.
pub(super) async fn run(
    gateway: &Gateway,
    interpreter: &Interpreter,
    (owner, job): (&str, Job),
    gone: CancellationToken,
) -> Result<Option<ExecuteAnswer>, Error> {
    let session = interpreter.session(SessionOptions {
        prelude: Vec::new(),
        rescue: Rescue::Off,
        ..gateway.granted(owner, None)
    });
    let done = tokio::select! {
        done = in_session(&session, &gateway.options.execute, job) => Some(done),
        () = gone.cancelled() => None,
        () = gateway.ending.cancelled() => None,
    };
    // What was given up has to end before its sandbox can.
    let closed = session.close_now().await;
    let answer = done.transpose()?;
    closed?;
    Ok(answer)
}

async fn in_session(session: &Session, options: &ExecuteOptions, job: Job) -> Result<ExecuteAnswer, Error> {
    for (name, bytes) in &job.files {
        put(session, &format!("{FOLDER}/{name}"), bytes).await?;
    }
    put(session, &format!("{FOLDER}/{SCRIPT}"), job.code.as_bytes()).await?;
    // A folder is made for the sake of a file.
    let mark = format!("{FOLDER}/{OUTPUT}/.made");
    put(session, &mark, b"").await?;
    session.remove_file(&mark).await?;
    // As a program and not as a cell: an uncaught exception is exit code 1 with its traceback on
    // stderr, `sys.exit(3)` is 3, `__main__` is a real file that can be started again
    // (`multiprocessing`), and what is killed at the deadline is all that it started.
    let program = SandboxProgram {
        argv: vec!["python3".to_owned(), SCRIPT.to_owned()],
        env: [("OUTPUT_DIR".to_owned(), format!("{FOLDER}/{OUTPUT}"))].into(),
        requirements: job.requirements,
        timeout: job.timeout,
        stream_bytes: options.max_stream,
    };
    let run = match session.run_program(program).await {
        Ok(run) => run,
        Err(error @ (Error::Requirements(_) | Error::Installing { .. })) => return Ok(not_installed(&error)),
        Err(error) => return Err(error),
    };
    let (files_produced, files_skipped) = collect(session, options).await?;
    Ok(ExecuteAnswer {
        files_produced,
        files_skipped,
        ..told(run, job.timeout.as_secs_f64())
    })
}

async fn put(session: &Session, path: &str, bytes: &[u8]) -> Result<(), Error> {
    let mut file = tempfile::tempfile().map_err(Error::Spool)?;
    file.write_all(bytes)
        .and_then(|()| file.rewind())
        .map_err(Error::Spool)?;
    session.put_file(path, file).await
}

fn not_installed(error: &Error) -> ExecuteAnswer {
    let reason = if error.blame() == Blame::Caller {
        error.to_string()
    } else {
        tracing::error!(error = error as &dyn std::error::Error, "install packages");
        "this server could not; its log says why".to_owned()
    };
    ExecuteAnswer {
        status: "error",
        stderr: format!("package installation failed: {reason}"),
        exit_code: NO_CODE,
        ..ExecuteAnswer::default()
    }
}

fn told(run: ProgramRun, limit: f64) -> ExecuteAnswer {
    let (exit_code, note) = match run.end {
        CommandEnd::Exited(code) => (code, None),
        CommandEnd::Signaled(signal) => (BY_SIGNAL + signal, None),
        CommandEnd::Flooded => (BY_SIGNAL + KILL, None),
        CommandEnd::TimedOut => (
            NO_CODE,
            Some(format!("execution timed out after {limit} seconds")),
        ),
        CommandEnd::Interrupted => (NO_CODE, Some("execution was interrupted".to_owned())),
    };
    let mut stderr = run.stderr.text;
    for line in note.into_iter().chain(run.notes) {
        if !stderr.is_empty() && !stderr.ends_with('\n') {
            stderr.push('\n');
        }
        stderr.push_str(&line);
    }
    ExecuteAnswer {
        status: if exit_code == 0 { "success" } else { "error" },
        stdout: run.stdout.text,
        stderr,
        exit_code,
        execution_time_ms: u64::try_from(run.duration.as_millis()).unwrap_or(u64::MAX),
        ..ExecuteAnswer::default()
    }
}

/// Collects what the program has left, as far as it is within the limits.
async fn collect(
    session: &Session,
    options: &ExecuteOptions,
) -> Result<(BTreeMap<String, String>, Vec<SkippedFile>), Error> {
    let (mut produced, mut skipped) = (BTreeMap::new(), Vec::new());
    let mut seen = BTreeSet::new();
    let mut left = options.max_all_files;
    for root in [format!("{FOLDER}/{OUTPUT}"), USUAL_OUTPUT.to_owned()] {
        let mut listing = match session.list_files(&root, options.max_files).await {
            Ok(listing) => listing,
            // The program may have removed the folder, or made something else of it.
            Err(error) if error.refusal().is_some() => continue,
            Err(error) => return Err(error),
        };
        skipped.append(&mut listing.skipped);
        for file in listing.files {
            let mut skip = |reason: String| {
                let path = file.path.clone();
                skipped.push(SkippedFile { path, reason });
            };
            let Some(name) = file
                .path
                .strip_prefix(&root)
                .map(|name| name.trim_start_matches('/').to_owned())
            else {
                continue;
            };
            if seen.contains(&name) {
                skip("another file of this name is delivered".to_owned());
                continue;
            }
            if produced.len() >= options.max_files as usize {
                skip(format!("more than {} files", options.max_files));
                continue;
            }
            let most = options.max_file.min(left);
            if file.bytes > most {
                skip(format!("it has {} bytes, {most} can be delivered", file.bytes));
                continue;
            }
            match read(session, &file.path, most).await? {
                Ok(bytes) => {
                    left -= bytes.len() as u64;
                    seen.insert(name.clone());
                    produced.insert(name, STANDARD.encode(bytes));
                }
                Err(reason) => skip(reason),
            }
        }
    }
    Ok((produced, skipped))
}

async fn read(session: &Session, path: &str, most: u64) -> Result<Result<Vec<u8>, String>, Error> {
    let opened = match session.open_file(path).await {
        Ok(opened) => opened,
        Err(error) if error.blame() == Blame::Caller => return Ok(Err(error.to_string())),
        // The program has run.
        Err(error) if error.is_disk_full() => {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "copy a file of a program"
            );
            return Ok(Err(
                "it could not be copied, because the server's disk is full; free space there".to_owned(),
            ));
        }
        Err(error) => return Err(error),
    };
    if opened.bytes > most {
        return Ok(Err(format!(
            "it has {} bytes, {most} can be delivered",
            opened.bytes
        )));
    }
    let mut bytes = Vec::new();
    (&opened.content).read_to_end(&mut bytes).map_err(Error::Spool)?;
    Ok(Ok(bytes))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cellblock_interpreter::execution::StreamText;

    use super::*;

    fn ended(end: CommandEnd, stderr: &str, notes: &[&str]) -> ExecuteAnswer {
        let text = |text: &str| StreamText {
            text: text.to_owned(),
            ..StreamText::default()
        };
        let run = ProgramRun {
            end,
            stdout: text("partial"),
            stderr: text(stderr),
            duration: Duration::from_millis(1500),
            notes: notes.iter().map(|&note| note.to_owned()).collect(),
        };
        told(run, 2.0)
    }

    #[test]
    fn a_timeout_keeps_what_was_written_and_is_told() {
        let silent = ended(CommandEnd::TimedOut, "", &[]);
        assert_eq!((silent.status, silent.exit_code), ("error", -1));
        assert_eq!(silent.stdout, "partial");
        assert_eq!(silent.stderr, "execution timed out after 2 seconds");
        let noisy = ended(CommandEnd::TimedOut, "warning", &[]);
        assert_eq!(noisy.stderr, "warning\nexecution timed out after 2 seconds");
    }

    #[test]
    fn codes_are_those_of_a_shell() {
        assert_eq!(ended(CommandEnd::Exited(0), "", &[]).status, "success");
        assert_eq!(ended(CommandEnd::Exited(3), "", &[]).exit_code, 3);
        let killed = ended(CommandEnd::Signaled(9), "x\n", &["memory ran out"]);
        assert_eq!((killed.exit_code, &*killed.stderr), (137, "x\nmemory ran out"));
        assert_eq!(ended(CommandEnd::Flooded, "", &[]).exit_code, 137);
    }
}
