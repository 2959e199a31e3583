//! Tools that run code whose effects count only once a model has looked at them.

use std::fmt::Write as _;

use cellblock_interpreter::cell::Language;
use cellblock_interpreter::session::checkpoints::tries::{ChangeKind, DecidedTry, TryChanges};
use cellblock_interpreter::toolset::{ToolDefinition, ToolEffect};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::cell::{self, NewCell};
use super::{Call, schema};
use crate::answer::{self, CallAnswer, RanCell};
use crate::options::Options;
use crate::refusal::Refusal;
use crate::shared::McpShared;

/// Number of changed names that the text of an answer lists.
const NAMED: usize = 30;

/// Code to try.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Try {
    /// The session's handle.
    session_id: String,
    /// The code. The value of a trailing expression is shown, as in a notebook.
    code: String,
    /// Seconds after which the code is interrupted.
    #[serde(default)]
    timeout_seconds: Option<f64>,
}

/// Decision about a try.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DecisionArguments {
    /// The session's handle.
    session_id: String,
    /// `keep` makes its variables and files those of the session; `discard` brings back the state before it.
    decision: Decision,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Decision {
    Keep,
    Discard,
}

/// A cell that was tried.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Tried")]
struct TriedCell {
    #[serde(flatten)]
    ran: RanCell,
    /// Differences from the state before it.
    changes: TryChanges,
    /// Whether `decide_try` has to be called next. Otherwise the code has ended its sandbox, with
    /// everything in it.
    undecided: bool,
}

pub(super) fn try_definition(options: &Options) -> ToolDefinition {
    let mut input = schema::read::<Try>();
    cell::bound_timeout(&mut input, options);
    ToolDefinition::new(
        "try_python",
        "Try code",
        "Runs Python in a session like a cell, but nothing of it counts yet. Use it for a step that may \
         turn out wrong, such as a transformation of data that is already loaded or a change of files: \
         the answer has everything that the code showed, and names the variables and files that it \
         changed. Then call `decide_try` with `keep` or `discard`; until then, every other call for this \
         session is refused. Functions of connectors that change something outside are refused in a try. \
         If the session has something that could not be brought back, such as threads, child processes or \
         open sockets, the answer names it and the code is not run.",
        input,
        ToolEffect::Adds,
    )
    .returns(schema::written::<TriedCell>())
}

pub(super) fn decide_definition() -> ToolDefinition {
    ToolDefinition::new(
        "decide_try",
        "Keep or discard a try",
        "Decides about the code that `try_python` ran last in a session: `keep` makes its variables and \
         files those of the session, `discard` brings back all variables and files as they were before \
         it, and ends what it started.",
        schema::read::<DecisionArguments>(),
        ToolEffect::Settles,
    )
    .returns(schema::written::<DecidedTry>())
}

pub(super) async fn run(server: &McpShared, call: &mut Call) -> Result<CallAnswer, Refusal> {
    let Try {
        session_id,
        code,
        timeout_seconds,
    } = call.read()?;
    let new = NewCell {
        session_id: None,
        code,
        timeout_seconds,
        requirements: Vec::new(),
        producer: None,
        language: Language::Python,
    };
    let checked = new.check(&server.options)?;
    let used = call.find(server, &session_id)?;
    let _turn = call.turn(&used).await?;
    let _permit = call.permit(server).await?;
    let tried = used
        .until(call.stop.cancelled(), used.session.try_run(checked))
        .await?;
    used.count_cell();
    let tokens = server.options.max_tokens;
    let mut answer = answer::told(&used, &tried.execution, tokens);
    answer.text(summary(&tried.changes, tried.undecided));
    answer.add("changes", json!(tried.changes));
    answer.add("undecided", json!(tried.undecided));
    Ok(answer)
}

pub(super) async fn decide(server: &McpShared, call: &mut Call) -> Result<CallAnswer, Refusal> {
    let DecisionArguments { session_id, decision } = call.read()?;
    let used = call.find(server, &session_id)?;
    let _turn = call.turn(&used).await?;
    let decided = used.session.decide_try(decision == Decision::Keep).await?;
    Ok(CallAnswer::of(&decided))
}

/// Tells a model what a try has changed, and what comes next.
fn summary(changes: &TryChanges, undecided: bool) -> String {
    if !undecided {
        return "[try] there is nothing to decide: the code has ended its sandbox, with everything in it"
            .to_owned();
    }
    let variables = changes.variables.iter().map(|it| (it.name.as_str(), it.change));
    let files = changes.files.iter().map(|it| (it.path.as_str(), it.change));
    format!(
        "[try] variables: {}; files: {}. Call `decide_try` with `keep` or `discard` next",
        listed(variables.collect(), 0),
        listed(files.collect(), changes.files_omitted)
    )
}

fn listed(names: Vec<(&str, ChangeKind)>, omitted: u64) -> String {
    if names.is_empty() {
        return "none changed".to_owned();
    }
    let left = names.len().saturating_sub(NAMED) as u64 + omitted;
    let mut text = String::new();
    for (at, (name, change)) in names.into_iter().take(NAMED).enumerate() {
        let comma = if at > 0 { ", " } else { "" };
        let change = change.name();
        // Writing into a string cannot fail.
        let _ = write!(text, "{comma}{name} ({change})");
    }
    if left > 0 {
        let _ = write!(text, ", {left} more");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_names_the_first_changes_and_counts_the_others() {
        let names: Vec<String> = (0..NAMED + 2).map(|n| format!("v{n}")).collect();
        let names = names.iter().map(|name| (name.as_str(), ChangeKind::Created));
        let text = listed(names.collect(), 3);
        assert!(text.starts_with("v0 (created), v1 (created)"), "{text}");
        assert!(text.ends_with("v29 (created), 5 more"), "{text}");
        assert_eq!(listed(Vec::new(), 0), "none changed");
    }
}
