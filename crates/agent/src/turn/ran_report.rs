//! Report of an execution, for clients that receive a program's streams and exit code.

use cellblock_interpreter::Execution;
use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::output::{Exception, Output};
use cellblock_interpreter::render::{self, Detail};

use super::call_result::TOKENS;
use crate::wire::{CallFault, CallReport};

/// The exception of a cell of bash whose last command failed.
const EXIT_STATUS: &str = "ExitStatus";

/// Returns the report of an execution; its files are added where they have ids.
pub(super) fn report(execution: &Execution) -> CallReport {
    let mut stdout = execution.stdout.text.clone();
    let mut stderr = execution.stderr.text.clone();
    let mut return_code = i32::from(execution.outcome.exit_code());
    for output in &execution.outputs {
        match output {
            Output::Exception(exception) => match exit_status(exception) {
                Some(status) => return_code = status,
                None => line(&mut stderr, &render::text(output, Detail::Full, TOKENS)),
            },
            shown => line(&mut stdout, &render::text(shown, Detail::Full, TOKENS)),
        }
    }
    for file in &execution.skipped_files {
        line(
            &mut stderr,
            &format!("[file left out] {}: {}", file.path, file.reason),
        );
    }
    if let Some(note) = &execution.note {
        line(&mut stderr, note);
    }
    let failure = match &execution.outcome {
        Outcome::Rejected { rejections } => {
            for rejection in rejections {
                line(&mut stderr, &rejection.message);
            }
            None
        }
        Outcome::Interrupted => Some(CallFault::TimedOut),
        Outcome::Completed | Outcome::Raised | Outcome::KernelLost { .. } | Outcome::LimitExceeded(_) => None,
    };
    CallReport {
        stdout,
        stderr,
        return_code,
        failure,
        ..CallReport::default()
    }
}

/// Returns the status with which bash, or its last command, ended.
fn exit_status(exception: &Exception) -> Option<i32> {
    let (_, rest) = exception.message.split_once(" status ")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let status = digits.parse().ok().filter(|status| (1..=255).contains(status));
    status.filter(|_| exception.exception == EXIT_STATUS)
}

/// Adds a text on lines of its own.
fn line(stream: &mut String, text: &str) {
    if text.is_empty() {
        return;
    }
    if !stream.is_empty() && !stream.ends_with('\n') {
        stream.push('\n');
    }
    stream.push_str(text);
    if !text.ends_with('\n') {
        stream.push('\n');
    }
}
