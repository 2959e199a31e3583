//! Cell as notebooks see it: why it did not complete, and whether its last value is its result.

use cellblock_interpreter::Output;
use cellblock_interpreter::execution::{Execution, Outcome};

use crate::shown::NotebookException;

/// Returns the reason that a cell did not complete.
pub(crate) fn raised(execution: &Execution) -> Option<NotebookException> {
    let exception = execution.outputs.iter().rev().find_map(|output| match output {
        Output::Exception(raised) => Some(NotebookException::from(raised)),
        _ => None,
    });
    let note = || execution.note.clone().unwrap_or_default();
    match &execution.outcome {
        Outcome::Completed => None,
        Outcome::Raised => Some(exception.unwrap_or_else(|| NotebookException::new("Error", note()))),
        Outcome::Interrupted => {
            Some(exception.unwrap_or_else(|| NotebookException::new("KeyboardInterrupt", note())))
        }
        Outcome::KernelLost { reason } => Some(NotebookException::new(
            "KernelLost",
            format!("{reason}. {}", note()),
        )),
        Outcome::LimitExceeded(exceeded) => {
            let message = format!(
                "{} is limited to {}. {}",
                exceeded.which.describe(),
                exceeded.limit,
                note()
            );
            Some(NotebookException::new("LimitExceeded", message))
        }
        Outcome::Rejected { rejections } => {
            let reasons: Vec<_> = rejections.iter().map(|it| it.message.as_str()).collect();
            Some(NotebookException::new("Rejected", reasons.join("; ")))
        }
    }
}

/// Returns whether the last statement of code looks like an expression whose value is shown.
/// Clients show a result and a displayed value alike, except for the number of the cell; so a guess
/// is good enough.
pub(crate) fn ends_with_expression(code: &str) -> bool {
    let mut lines = code
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    let Some(last) = lines.next_back() else {
        return false;
    };
    let is_block = last.starts_with([' ', '\t']) && !last.trim_end().ends_with([')', ']', '}']);
    let last_statement = last.rsplit(';').next().unwrap_or_default().trim();
    let is_shown = ["display(", "print("]
        .iter()
        .any(|it| last_statement.starts_with(it));
    !is_block && !is_shown && !last.trim_end().ends_with(';')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_statement_is_an_expression_or_not() {
        for code in ["x", "print(1); x", "x = 1\nx + 1\n# end\n", "f(\n    1,\n)"] {
            assert!(ends_with_expression(code), "{code:?}");
        }
        for code in ["", "x;", "display(x)", "print(1)", "for x in y:\n    x"] {
            assert!(!ends_with_expression(code), "{code:?}");
        }
    }
}
