//! A provider without a model that demonstrates the interpreter: it runs the Python in the user's
//! message, or a small analysis of its own.

use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, stream};
use serde_json::json;

use super::scripted::ScriptedAnswer;
use super::{INTERPRETER, ModelRequest, ModelStream, Provider, ProviderError};
use crate::wire::{Item, Role, texts};

/// Code that runs if the message contains no Python.
const ANALYSIS: &str = include_str!("demo.py");

/// Answers each message by running code once and repeating its output.
#[derive(Clone, Copy, Debug, Default)]
pub struct Demo;

impl Provider for Demo {
    fn stream(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ProviderError>> {
        let steps = answer(&request).steps();
        Box::pin(async move { Ok(stream::iter(steps).boxed()) })
    }
}

fn answer(request: &ModelRequest) -> ScriptedAnswer {
    // Items after the user's last message.
    let said = request.items.iter().rposition(|item| from_user(item).is_some());
    let ran = request.items[said.map_or(0, |at| at + 1)..]
        .iter()
        .rev()
        .find_map(|item| match item {
            Item::FunctionCallOutput(output) => Some(output),
            _ => None,
        });
    if let Some(output) = ran {
        return ScriptedAnswer::new()
            .text(&format!("I ran the code. It gave:\n\n{}\n", output.output.text()));
    }
    if !request.offered().any(|tool| tool.name == INTERPRETER) {
        return ScriptedAnswer::new().text(
            "This is the demo of Cellblock, not a model: it runs Python and no more. Send the tool \
             `code_interpreter` and a message with a Python block.",
        );
    }
    let text = said
        .and_then(|at| from_user(&request.items[at]))
        .unwrap_or_default();
    let (before, code) = match python_block(&text) {
        Some(code) => ("I will run your code.\n", code),
        None => (
            "You sent no Python block, so I will run a small analysis of my own.\n",
            ANALYSIS.to_owned(),
        ),
    };
    let arguments = json!({"code": code}).to_string();
    ScriptedAnswer::new()
        .text(before)
        .call("call_demo", INTERPRETER, &arguments)
}

pub(super) fn from_user(item: &Item) -> Option<String> {
    match item {
        Item::Message(message) if message.role == Role::User => Some(texts(&message.content)),
        _ => None,
    }
}

/// Returns the first block between three backticks whose language is Python or unspecified.
fn python_block(text: &str) -> Option<String> {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("```") {
        let (language, after) = after.split_once('\n')?;
        let (block, after) = after.split_once("```").unwrap_or((after, ""));
        if matches!(language.trim(), "" | "python" | "py" | "python3") {
            return Some(format!("{}\n", block.trim_end()));
        }
        rest = after;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_block_of_python_is_found() {
        let text = "Look:\n```sh\nls\n```\nand\n```python\nx = 1\nprint(x)\n```\n```\ny\n```";
        assert_eq!(python_block(text).unwrap(), "x = 1\nprint(x)\n");
        assert_eq!(python_block("```\n1 + 1\n```").unwrap(), "1 + 1\n");
        assert_eq!(python_block("no block, only `code`"), None);
        assert_eq!(python_block("Run ```python\n2\n``` now").unwrap(), "2\n");
        assert_eq!(python_block("```js\n1\n```"), None);
        assert_eq!(python_block("```python\ncut off").unwrap(), "cut off\n");
    }
}
