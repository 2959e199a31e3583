//! The text of an incomplete answer: the available data, and the gaps.

use std::collections::BTreeMap;

use cellblock_interpreter::alias::AliasStore;

use super::outcome::Gap;

/// Maximum number of tokens of fetched data in a text without an answer.
const FETCHED: usize = 2000;

/// Returns the model's answer, or the available data in its place, and the gaps.
pub(super) fn text(answer: Option<String>, derived: &[String], aliases: &AliasStore, gaps: &[Gap]) -> String {
    let mut sections = Vec::new();
    if let Some(answer) = answer {
        sections.push(answer);
    } else {
        sections.push("No answer was completed.".to_owned());
        if !derived.is_empty() {
            sections.push(format!("## Derived\n\n{}", derived.join("\n\n")));
        }
        let views = aliases.model_views(FETCHED).into_iter();
        let views: BTreeMap<_, _> = views.map(|view| (view.alias, view.text)).collect();
        if !views.is_empty() {
            let views: Vec<_> = views.into_values().collect();
            sections.push(format!("## Fetched\n\n{}", views.join("\n\n")));
        }
    }
    let gaps: Vec<_> = gaps
        .iter()
        .map(|gap| format!("- `{}`: {}", gap.code, gap.message))
        .collect();
    sections.push(format!("## Gaps\n\n{}", gaps.join("\n")));
    sections.join("\n\n")
}
