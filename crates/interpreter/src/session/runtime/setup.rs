//! Code that prepares a session: before its first cell, and again when its kernel is reset or replaced.

use cellblock_protocol::text::acts;
use cellblock_protocol::{CellError, KernelOutcome, Rejection, ToKernel};

use crate::error::{Error, Result};
use crate::session::journal::Journal;
use crate::session::options::SetupSnippet;
use crate::session::runtime::RunTerms;
use crate::session::runtime::Runtime;
use crate::session::runtime::run::{End, RequestResult, Stop};

/// Characters of a snippet's name, and of its error, in a note.
const NAME: usize = 80;
const REASON: usize = 300;

impl Runtime {
    /// Runs the setup code in a kernel that has just been started or reset. Returns whether the
    /// kernel is still there. What ends it is not run again.
    pub(in crate::session) async fn set_up(&mut self, journal: &mut Journal) -> Result<bool> {
        if !self.show_way_out(journal).await? {
            return Ok(false);
        }
        for index in 0..self.options.setup.len() {
            if self.unusable_setup.contains(&index) {
                continue;
            }
            let SetupSnippet { name, code, guarded } = self.options.setup[index].clone();
            let message = ToKernel::Setup {
                cell: self.number(),
                name: name.clone(),
                code,
                guarded,
            };
            let timeout = self.limits.cell_timeout;
            let ran = match self.run(journal, &message, RunTerms::alone(timeout)).await {
                Ok(ran) => ran,
                Err(error) => {
                    // What it shows would fail every request.
                    if matches!(&error, Error::Output(output) if output.is_from_the_kernel()) {
                        self.unusable_setup.insert(index);
                    }
                    return Err(error);
                }
            };
            if let Some(reason) = failure(&ran) {
                journal.unreported.push(format!(
                    "the setup code `{}` {reason}; the session continues without what it did not bind",
                    readable(&name, NAME)
                ));
            }
            if matches!(ran.end, End::Lost(_)) {
                self.unusable_setup.insert(index);
                return Ok(false);
            }
            self.hear_out(journal).await?;
            if self.kernel.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Says how a snippet failed, if it did.
fn failure(ran: &RequestResult) -> Option<String> {
    let (outcome, error, rejections) = match &ran.end {
        End::Lost(_) => {
            return Some("ended the kernel and will not run again in this session".to_owned());
        }
        End::Done {
            outcome,
            error,
            rejections,
        } => (*outcome, error.as_ref(), rejections),
    };
    match (outcome, ran.stopped) {
        (KernelOutcome::Completed, _) => None,
        (_, Some(Stop::Deadline)) => Some("was stopped because it reached the timeout of a cell".to_owned()),
        (_, Some(Stop::Output)) => Some("was stopped because it printed too much".to_owned()),
        _ => Some(described(error, rejections)),
    }
}

fn described(error: Option<&CellError>, rejections: &[Rejection]) -> String {
    let (line, reason) = match (rejections.first(), error) {
        (Some(found), _) => (found.line, format!("the guard rejected it: {}", found.message)),
        (None, Some(error)) => (error.line, format!("{}: {}", error.kind, error.message)),
        (None, None) => (None, "it did not complete".to_owned()),
    };
    let place = line.map_or_else(String::new, |line| format!(" in line {line}"));
    format!("failed{place}: {}", readable(&reason, REASON))
}

/// Text of a sandbox or a client in one bounded line.
fn readable(text: &str, most: usize) -> String {
    text.chars()
        .map(|c| if acts(c) || c == '\n' { ' ' } else { c })
        .take(most)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_line_and_reason_in_one_bounded_line() {
        let error = CellError {
            kind: "NameError".into(),
            message: format!("name\u{1b}\n{}", "x".repeat(1000)),
            errno: None,
            line: Some(3),
            exit_code: None,
        };
        let text = described(Some(&error), &[]);
        assert!(
            text.starts_with("failed in line 3: NameError: name  xx"),
            "{text}"
        );
        assert!(text.chars().count() < 330, "{text}");
        let rejected = Rejection {
            rule: "strict.builtin".into(),
            line: Some(2),
            message: "eval is blocked".into(),
        };
        assert_eq!(
            described(Some(&error), &[rejected]),
            "failed in line 2: the guard rejected it: eval is blocked"
        );
        assert_eq!(described(None, &[]), "failed: it did not complete");
    }
}
