//! Verdict on a probe.

use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::output::Output;
use cellblock_interpreter::{Error, Execution};

use crate::probe::Probe;

/// The verdict on one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The attempt failed, for a reason.
    Held(String),
    /// It worked.
    Reached(String),
    /// Nobody knows.
    Missing(String),
}

impl Verdict {
    /// Parses the verdict of a probe about itself.
    pub(crate) fn said(text: &str) -> Option<Self> {
        let find = |mark: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(mark).map(str::to_owned))
        };
        find("@reached ")
            .map(Self::Reached)
            .or_else(|| find("@held ").map(Self::Held))
    }
}

/// Judges how a probe ended in a sandbox. What it says to have reached counts, whatever else happened.
pub(crate) fn judge(probe: &Probe, ended: &Result<Execution, Error>) -> Verdict {
    let end = describe(ended);
    let text = ended.as_ref().map_or("", |execution| &execution.stdout.text);
    match Verdict::said(text) {
        Some(Verdict::Reached(what)) => Verdict::Reached(what),
        Some(held) if probe.ends.is_empty() && end == "completed" => held,
        _ if probe.ends.contains(&end) => Verdict::Held(end),
        _ if probe.ends.is_empty() => Verdict::Missing(format!("it said nothing and ended as `{end}`")),
        _ => Verdict::Missing(format!("it ended as `{end}`, not as {:?}", probe.ends)),
    }
}

/// A cell's end in the words of a probe's header.
fn describe(ended: &Result<Execution, Error>) -> String {
    let execution = match ended {
        Ok(execution) => execution,
        Err(Error::Output(_)) => return "broken output".into(),
        Err(Error::Sandbox(error)) if error.to_string().starts_with("the kernel broke the protocol") => {
            return "broken protocol".into();
        }
        Err(error) => return format!("error {error}"),
    };
    match &execution.outcome {
        Outcome::LimitExceeded(exceeded) => {
            let which = serde_json::to_value(exceeded.which).unwrap();
            format!("limit_exceeded {}", which.as_str().unwrap())
        }
        Outcome::Raised => {
            let last = execution.outputs.last();
            let Some(Output::Exception(exception)) = last else {
                return "raised without an exception".into();
            };
            format!("raised {}", exception.exception)
        }
        other => other.name().to_owned(),
    }
}
