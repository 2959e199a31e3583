//! What a model reads at each step: the request, its calls, and their results within a budget.

use super::evidence::Evidence;
use super::{ToolCall, ToolDefinition};
use crate::render::CHARS_PER_TOKEN;

/// Characters of a result's text that stay when there is no room for more.
const LEAST: usize = 160;

/// A turn so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    /// What the user asked for.
    pub request: String,
    /// What was called and what came of it, in order.
    pub entries: Vec<Entry>,
    /// The tools that may be called in this step.
    pub tools: Vec<ToolDefinition>,
    /// Steps that are left, this one included.
    pub steps_left: u32,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// The model called tools.
    Calls(Vec<ToolCall>),
    /// A call came back.
    Result {
        /// The call's id.
        call: String,
        /// The tool.
        tool: String,
        /// The alias of the whole result.
        alias: Option<String>,
        /// What the model rereads of it.
        text: String,
        /// Whether it failed.
        failed: bool,
    },
    /// The runtime says something.
    Notice(String),
}

impl Transcript {
    /// Adapts what is reread to a budget: texts of derivations and failures first, of which the oldest are cut, then views of the fetched
    /// data in what is left.
    pub(super) fn fit(&mut self, evidence: &impl Evidence, tokens: usize) {
        let chars = tokens.saturating_mul(CHARS_PER_TOKEN);
        // Half is kept for fetched data, so that a talkative program does not hide what it works on.
        let texts = self.cut_texts(chars / 2);
        let views = evidence.views(chars.saturating_sub(texts) / CHARS_PER_TOKEN);
        for entry in &mut self.entries {
            if let Entry::Result {
                alias: Some(alias),
                text,
                failed: false,
                tool,
                ..
            } = entry
                && !is_own(tool)
                && let Some(view) = views.get(alias)
            {
                text.clone_from(view);
            }
        }
    }

    /// Cuts the oldest texts until all fit; answers how many characters they have.
    fn cut_texts(&mut self, chars: usize) -> usize {
        let texts = self.entries.iter_mut().filter_map(own_text);
        let mut texts: Vec<_> = texts.collect();
        let mut total: usize = texts.iter().map(|(text, _)| text.chars().count()).sum();
        for (text, alias) in &mut texts {
            if total <= chars {
                break;
            }
            let before = text.chars().count();
            // What is cut stays cut, and is not marked again.
            if before > LEAST * 2 {
                **text = shortened(text, before, alias.as_deref());
                total = total - before + text.chars().count();
            }
        }
        total
    }
}

/// The text of a result that no view stands for.
fn own_text(entry: &mut Entry) -> Option<(&mut String, &Option<String>)> {
    match entry {
        Entry::Result {
            text,
            alias,
            failed,
            tool,
            ..
        } if *failed || alias.is_none() || is_own(tool) => Some((text, alias)),
        _ => None,
    }
}

fn is_own(tool: &str) -> bool {
    use crate::derivation::tools::{CODE_INTERPRETER, RENDER_CHART};
    [CODE_INTERPRETER, RENDER_CHART].contains(&tool)
}

fn shortened(text: &str, chars: usize, alias: Option<&str>) -> String {
    let kept: String = text.chars().take(LEAST).collect();
    let whole = match alias {
        Some(alias) => format!("; the result is `{alias}`"),
        None => String::new(),
    };
    format!("{kept}… ({} more characters left out{whole})", chars - LEAST)
}
