//! The text of an answer that is not whole: what there is, and what has to be told.

use super::evidence::Evidence;
use super::outcome::Gap;

/// Tokens of fetched data in a text without an answer.
const EVIDENCE: usize = 2000;

const TELL: &str = "Tell the user about each of these gaps in plain words. Do not leave one out, and do not describe a chart or a \
                    number that is not there.";

/// Who reads what a turn came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// A model that puts it into words for the user.
    Model,
    /// The user.
    User,
}

/// The model's answer, or what there is instead of one, and the gaps.
pub(super) fn text(
    reader: Reader,
    answer: Option<String>,
    derived: &[String],
    evidence: &impl Evidence,
    gaps: &[Gap],
) -> String {
    let mut sections = Vec::new();
    if let Some(answer) = answer {
        sections.push(answer);
    } else {
        sections.push("No answer was completed.".to_owned());
        if !derived.is_empty() {
            sections.push(format!("## Derived\n\n{}", derived.join("\n\n")));
        }
        let views: Vec<_> = evidence.views(EVIDENCE).into_values().collect();
        if !views.is_empty() {
            sections.push(format!("## Fetched\n\n{}", views.join("\n\n")));
        }
    }
    let gaps: Vec<_> = gaps
        .iter()
        .map(|gap| format!("- `{}`: {}", gap.code, gap.message))
        .collect();
    let tell = match reader {
        Reader::Model => format!("{TELL}\n\n"),
        Reader::User => String::new(),
    };
    sections.push(format!("## Gaps\n\n{tell}{}", gaps.join("\n")));
    sections.join("\n\n")
}
