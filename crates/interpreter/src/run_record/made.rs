//! Hashes of what an execution made.

use std::time::Duration;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{RecordedOutput, RunDurations, RunError, RunFetch, RunRecord, RunStream};
use crate::connector::FetchRecord;
use crate::error::{Blame, Error};
use crate::execution::{Execution, Outcome, StreamText};
use crate::output::Output;

/// Characters of a message of an error.
const MESSAGE: usize = 1000;

/// The part of a record that is known at the end of its run.
#[derive(Debug)]
pub(crate) struct RunMade<'a> {
    pub(crate) result: Result<&'a Execution, RunError>,
    /// From the request until code began to run, if it did.
    pub(crate) prepared: Option<Duration>,
    /// From the request to the end.
    pub(crate) took: Duration,
}

/// Returns the hash of bytes in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Returns a hash in hexadecimal digits.
pub(crate) fn hex(hash: &[u8]) -> String {
    use std::fmt::Write as _;

    hash.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl RunMade<'_> {
    /// Completes a record.
    pub(crate) fn complete(self, record: &mut RunRecord) {
        let execution = match self.result {
            Ok(execution) => execution,
            Err(error) => {
                "error".clone_into(&mut record.outcome);
                record.error = Some(error);
                record.durations.prepare_ms = milliseconds(self.prepared.unwrap_or(self.took));
                return;
            }
        };
        let prepared = self.prepared.unwrap_or_default();
        let after = self.took.saturating_sub(prepared + execution.duration);
        record.cell = execution.cell;
        execution.outcome.name().clone_into(&mut record.outcome);
        record.state = execution.state;
        record.error = ending(execution);
        record.outputs = execution.outputs.iter().map(output).collect();
        record.stdout = stream(&execution.stdout);
        record.stderr = stream(&execution.stderr);
        record.files.clone_from(&execution.files);
        record.fetches = execution.fetches.iter().map(fetch).collect();
        record.durations = RunDurations {
            prepare_ms: milliseconds(prepared),
            run_ms: milliseconds(execution.duration),
            finish_ms: milliseconds(after),
        };
    }
}

fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

fn shortened(text: &str) -> String {
    text.chars().take(MESSAGE).collect()
}

/// Errors of this machine may name its paths, which are nothing for the owner of a session.
pub(crate) fn failure(error: &Error) -> RunError {
    let blame = error.blame();
    RunError {
        kind: format!("{blame:?}").to_lowercase(),
        message: match blame {
            Blame::Caller => shortened(&error.to_string()),
            _ => "the code could not be run; the server's log says why".to_owned(),
        },
    }
}

fn ending(execution: &Execution) -> Option<RunError> {
    let (kind, message) = match &execution.outcome {
        Outcome::Completed => return None,
        Outcome::Raised => execution.outputs.iter().rev().find_map(|output| match output {
            Output::Exception(it) => Some((it.exception.clone(), it.message.clone())),
            _ => None,
        })?,
        Outcome::Interrupted => {
            let note = execution.note.clone();
            ("interrupted".to_owned(), note.unwrap_or_default())
        }
        Outcome::KernelLost { reason } => ("kernel_lost".to_owned(), reason.clone()),
        Outcome::LimitExceeded(it) => (
            it.which.describe().to_owned(),
            format!("limit {}, actual {}", it.limit, it.actual),
        ),
        Outcome::Rejected { rejections } => {
            let first = rejections.first()?;
            let rule = first.rule.as_ref().unwrap_or(&first.code);
            (rule.clone(), first.message.clone())
        }
    };
    Some(RunError {
        kind,
        message: shortened(&message),
    })
}

fn output(output: &Output) -> RecordedOutput {
    let json = serde_json::to_value(output).unwrap_or_default();
    let kind = json.get("type").and_then(Value::as_str);
    RecordedOutput {
        kind: kind.unwrap_or_default().to_owned(),
        name: output.name().map(str::to_owned),
        sha256: sha256(json.to_string().as_bytes()),
        artifacts: output.artifacts().into_iter().cloned().collect(),
    }
}

fn stream(stream: &StreamText) -> RunStream {
    RunStream {
        sha256: sha256(stream.text.as_bytes()),
        bytes: stream.bytes,
        truncated: stream.truncated,
    }
}

fn fetch(fetch: &FetchRecord) -> RunFetch {
    let arguments = Value::Object(fetch.arguments.clone()).to_string();
    RunFetch {
        connector: fetch.connector.clone(),
        function: fetch.function.clone(),
        arguments_sha256: sha256(arguments.as_bytes()),
        outcome: fetch.outcome.to_owned(),
        cached: fetch.cached,
        sha256: fetch.artifact.as_ref().map(|it| it.sha256.to_string()),
    }
}
