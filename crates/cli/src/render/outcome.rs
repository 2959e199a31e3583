//! Tells how a cell ended, when there is more to say than its outputs do.

use std::fmt::Write as _;

use cellblock_interpreter::Execution;
use cellblock_interpreter::execution::{Outcome, StreamText};

use super::table::{grouped, plural};
use super::{BAD, NOTE, styled};
use crate::sanitize;
use cellblock_settings::Size;

/// Returns a remark for each part that is left out of the outputs and streams that were shown.
pub(crate) fn omissions(execution: &Execution) -> Vec<String> {
    let mut remarks = Vec::new();
    for (name, stream) in [("stdout", &execution.stdout), ("stderr", &execution.stderr)] {
        if stream.truncated {
            remarks.push(truncation(name, stream));
        }
    }
    if execution.outputs_dropped > 0 {
        let dropped = u64::from(execution.outputs_dropped);
        remarks.push(note(&format!(
            "{} more {} not shown: a cell may show {}",
            grouped(dropped),
            if dropped == 1 {
                "output was"
            } else {
                "outputs were"
            },
            execution.outputs.len()
        )));
    }
    for file in &execution.skipped_files {
        let reason = sanitize::line(&file.reason);
        remarks.push(note(&match file.path.as_str() {
            "" => reason,
            path => format!("{} was not saved: {reason}", sanitize::line(path)),
        }));
    }
    remarks
}

fn truncation(name: &str, stream: &StreamText) -> String {
    note(&format!(
        "only a part of {name} is shown: the cell wrote {}; print a summary, or write the data to a file \
         in /tmp/output",
        Size(stream.bytes)
    ))
}

/// Describes the end of a cell; nothing for one that completed, or that raised what has been shown.
pub(crate) fn ending(execution: &Execution) -> Option<String> {
    let text = execution
        .note
        .as_deref()
        .map(|note| sanitize::text(note).trim_end().to_owned());
    let head = match &execution.outcome {
        Outcome::Completed | Outcome::Raised => return text.map(|text| note(&text)),
        Outcome::Interrupted => "interrupted",
        Outcome::KernelLost { .. } => "kernel lost",
        Outcome::LimitExceeded(_) => "limit exceeded",
        Outcome::Rejected { rejections } => return Some(rejected(rejections)),
    };
    Some(match text {
        Some(text) => format!("{}: {text}", styled(BAD, head)),
        None => styled(BAD, head),
    })
}

/// Describes the reason that a cell was refused.
pub(crate) fn rejected(rejections: &[cellblock_interpreter::execution::Rejection]) -> String {
    let count = rejections.len() as u64;
    let mut text = format!(
        "{}: the cell was refused for {count} {}",
        styled(BAD, "rejected"),
        plural(count, "reason")
    );
    for rejection in rejections {
        let line = rejection
            .line
            .map(|line| format!("line {line}: "))
            .unwrap_or_default();
        let message = sanitize::text(&rejection.message);
        let _ = write!(
            text,
            "\n  {line}{} ({})",
            message.trim_end(),
            sanitize::line(rejection.rule.as_deref().unwrap_or(&rejection.code))
        );
    }
    text
}

/// Something worth knowing.
pub(crate) fn note(text: &str) -> String {
    format!("{}: {text}", styled(NOTE, "note"))
}
