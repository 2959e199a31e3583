//! Tools that look at the variables of a session without running code.

use cellblock_interpreter::Error;
use cellblock_interpreter::lineage::{self, VariableOrigin};
use cellblock_interpreter::page::PageSelection;
use cellblock_interpreter::render::Detail;
use cellblock_interpreter::session::Variable;
use cellblock_interpreter::toolset::{ToolDefinition, ToolEffect};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Call, schema};
use crate::answer::{self, CallAnswer, ShownVariable};
use crate::refusal::{Refusal, named};
use crate::shared::McpShared;

/// Session to use.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Session {
    /// The session's handle.
    session_id: String,
}

/// Variable to show.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct VariableArguments {
    /// The session's handle.
    session_id: String,
    /// The variable's name.
    name: String,
    /// Number of rows of a page of a table, 1 to 1000; 10 by default.
    #[serde(default)]
    rows: Option<u32>,
    /// Number of characters of a page of a text, 1 to 100,000; 1000 by default.
    #[serde(default)]
    chars: Option<u32>,
    /// Page of a table or a text, from 0; -1 is the last one. Without `rows`, `chars` and `page`,
    /// the beginning and the end are shown.
    #[serde(default)]
    page: Option<i64>,
    /// `minimal` shows what the value is and how it begins.
    #[serde(default)]
    view: Detail,
}

/// Whose origin.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OriginArguments {
    /// The session's handle.
    session_id: String,
    /// The variable's name.
    name: String,
}

/// The variables of a session.
#[derive(Debug, Serialize, JsonSchema)]
struct VariableList {
    /// The session's handle.
    session_id: String,
    /// The variables that code has bound.
    variables: Vec<Variable>,
}

pub(super) fn list_definition() -> ToolDefinition {
    ToolDefinition::new(
        "list_variables",
        "List variables",
        "Lists the variables of a session with their types and a short description of their values.",
        schema::read::<Session>(),
        ToolEffect::Reads,
    )
    .returns(schema::written::<VariableList>())
}

pub(super) fn show_definition() -> ToolDefinition {
    ToolDefinition::new(
        "show_variable",
        "Show a variable",
        "Shows a variable of a session as its cell would display it, any page of a table or a text, and \
         where the variable comes from, if a cell with a `producer` made it.",
        schema::read::<VariableArguments>(),
        ToolEffect::Reads,
    )
    .returns(schema::written::<ShownVariable>())
}

pub(super) fn origin_definition() -> ToolDefinition {
    ToolDefinition::new(
        "variable_origin",
        "Tell where a variable comes from",
        "Tells which producer made a variable of a session and in which cell, and from which datasets and \
         answers of connectors it is made. Only variables that a cell with a `producer` made \
         have an origin.",
        schema::read::<OriginArguments>(),
        ToolEffect::Reads,
    )
    .returns(schema::written::<VariableOrigin>())
}

pub(super) async fn list(server: &McpShared, call: &mut Call) -> Result<CallAnswer, Refusal> {
    let Session { session_id } = call.read()?;
    let used = call.find(server, &session_id)?;
    let _turn = call.turn(&used).await?;
    // No sandbox is made only to find it empty.
    let variables = match used.cells() {
        0 => Vec::new(),
        _ => {
            used.until(call.stop.cancelled(), used.session.variables())
                .await?
        }
    };
    Ok(CallAnswer::of(&VariableList {
        session_id,
        variables,
    }))
}

pub(super) async fn show(server: &McpShared, call: &mut Call) -> Result<CallAnswer, Refusal> {
    let VariableArguments {
        session_id,
        name,
        rows,
        chars,
        page,
        view,
    } = call.read()?;
    let used = call.find(server, &session_id)?;
    let _turn = call.turn(&used).await?;
    // A table is written and stored, and a page of it read, as a cell does.
    let _permit = call.permit(server).await?;
    let read = async { Ok::<_, Error>((used.session.get(&name).await?, used.session.origin(&name).await?)) };
    let (output, origin) = used.until(call.stop.cancelled(), read).await?;
    let Some(output) = output else {
        return Err(missing(&name));
    };
    let store = server.engine.get().await?.store();
    let selection = PageSelection { rows, chars, page };
    let tokens = server.options.max_tokens;
    answer::variable(&used, store, (&output, origin), (selection, view), tokens).await
}

pub(super) async fn origin(server: &McpShared, call: &mut Call) -> Result<CallAnswer, Refusal> {
    let OriginArguments { session_id, name } = call.read()?;
    let used = call.find(server, &session_id)?;
    let _turn = call.turn(&used).await?;
    let read = async {
        let origin = used.session.origin(&name).await?;
        // No sandbox is made only to find it empty.
        let exists = origin.is_some()
            || used.cells() > 0 && used.session.variables().await?.iter().any(|it| it.name == name);
        Ok::<_, Error>((origin, exists))
    };
    match used.until(call.stop.cancelled(), read).await? {
        (Some(origin), _) => Ok(CallAnswer::of(&origin)),
        (None, true) => Err(Refusal::new(lineage::no_origin(&name))),
        (None, false) => Err(missing(&name)),
    }
}

fn missing(name: &str) -> Refusal {
    Refusal::new(format!(
        "the session has no variable {:?}: `list_variables` lists those that there are",
        named(name)
    ))
}
