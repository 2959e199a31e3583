//! `sandbox_exec`: an answer made of what a command came to.

use std::time::Duration;

use super::hint::Hint;
use super::reply::ExecResult;
use crate::execution::SkippedFile;
use crate::session::{CommandEnd, CommandResult};

/// Bytes of each stream in an answer.
pub(super) const STREAM_BYTES: usize = 10 * 1024;
/// Files that are handed over after one command.
pub(super) const FILES: usize = 20;

/// The code of a command whose time was over, as `timeout(1)` has it.
const TIMED_OUT: i32 = 124;
/// Number that a shell adds to the number of a signal.
const BY_SIGNAL: i32 = 128;
// As signal(7) numbers them.
const INTERRUPT: i32 = 2;
const KILL: i32 = 9;

pub(super) fn result(
    executed: CommandResult,
    longest: Duration,
    mut skipped: Vec<SkippedFile>,
    files: Vec<String>,
) -> ExecResult {
    let exit_code = code(executed.end);
    let timed_out = executed.end == CommandEnd::TimedOut;
    let mut notes = executed.notes;
    if executed.end == CommandEnd::Interrupted {
        notes.push("the command was interrupted".to_owned());
    }
    let total = executed.outputs.total;
    let hint = match exit_code {
        0 => Hint::executed(files.len() as u64, total),
        _ if timed_out => Hint::timed_out(longest),
        _ => Hint::failed(),
    };
    let mut all_skipped = executed.outputs.skipped;
    all_skipped.append(&mut skipped);
    ExecResult {
        exit_code,
        stdout: executed.stdout.text,
        stderr: executed.stderr.text,
        stdout_truncated: executed.stdout.truncated,
        stderr_truncated: executed.stderr.truncated,
        output_files: files,
        total_output_files: total,
        execution_time: (executed.duration.as_secs_f64() * 1000.0).round() / 1000.0,
        timed_out,
        skipped_files: all_skipped,
        note: (!notes.is_empty()).then(|| notes.join(". ")),
        hint,
    }
}

fn code(end: CommandEnd) -> i32 {
    match end {
        CommandEnd::Exited(code) => code,
        CommandEnd::Signaled(signal) => BY_SIGNAL + signal,
        CommandEnd::TimedOut => TIMED_OUT,
        CommandEnd::Flooded => BY_SIGNAL + KILL,
        CommandEnd::Interrupted => BY_SIGNAL + INTERRUPT,
    }
}
