//! Code and commands of earlier messages, with their results: items as the loop made them.

use serde_json::Value;

use super::super::fields::{Fields, RequestFields as _};
use super::tools::COMMANDS;
use crate::wire::anthropic::{BASH, CODE, EDITOR, item_suffix};
use crate::wire::error::ApiError;
use crate::wire::item::{CodeInterpreterCall, InterpreterOutput, Item, ItemStatus, McpCall};

/// Whether a block is the result of code execution.
pub(super) fn is_result(kind: &str) -> bool {
    [CODE, BASH, EDITOR]
        .iter()
        .any(|name| kind.strip_suffix("_tool_result") == Some(name))
}

/// Returns the id of the item that a block's id names.
pub(super) fn code_id(id: &str) -> String {
    format!("ci_{}", item_suffix(id))
}

/// Returns the arguments of a call as JSON.
pub(super) fn input(block: &Fields<'_>) -> Result<String, ApiError> {
    Ok(Value::Object(block.object("input")?.unwrap_or_default()).to_string())
}

/// Parses a `server_tool_use`. Its result may follow.
pub(super) fn call(block: &Fields<'_>, container: &str) -> Result<Item, ApiError> {
    let id = block.required("id")?;
    match block.required("name")?.as_str() {
        CODE => {
            let input = block.fields("input")?;
            let code = input.map_or(Ok(None), |input| input.text("code"))?;
            Ok(Item::CodeInterpreterCall(CodeInterpreterCall {
                id: code_id(&id),
                status: ItemStatus::Interpreting,
                container_id: container.to_owned(),
                code,
                outputs: None,
                report: None,
            }))
        }
        name @ (BASH | EDITOR) => Ok(Item::McpCall(McpCall {
            id: format!("mcp_{}", item_suffix(&id)),
            status: ItemStatus::Completed,
            server_label: COMMANDS.to_owned(),
            name: name.to_owned(),
            arguments: input(block)?,
            output: None,
            error: None,
            approval_request_id: None,
            report: None,
        })),
        other => Err(block.unknown("name", other, &format!("`{CODE}`, `{BASH}` or `{EDITOR}`"))),
    }
}

/// Gives a result to its call among the items. The call takes the result's place: calls that its
/// code made come before it.
pub(super) fn add(block: &Fields<'_>, kind: &str, items: &mut Vec<Item>) -> Result<(), ApiError> {
    let id = block.required("tool_use_id")?;
    let suffix = item_suffix(&id);
    let of_call = |item: &Item| match item {
        Item::CodeInterpreterCall(call) => call.id.strip_prefix("ci_") == Some(suffix),
        Item::McpCall(call) => call.id.strip_prefix("mcp_") == Some(suffix),
        _ => false,
    };
    let content = block.required_fields("content")?;
    let Some(place) = items.iter().position(of_call) else {
        let path = block.path("tool_use_id");
        let message = format!(
            "there is no `server_tool_use` `{id}` before `{path}`, a block of type `{kind}`; send it too"
        );
        return Err(ApiError::invalid(path, "unknown_call_id", message));
    };
    let logs = told(&content)?;
    let mut item = items.remove(place);
    match &mut item {
        Item::CodeInterpreterCall(call) => {
            call.status = ItemStatus::Completed;
            let logs = logs.into_iter().map(|logs| InterpreterOutput::Logs { logs });
            call.outputs = Some(logs.collect());
        }
        Item::McpCall(call) => call.output = Some(logs.join("\n")),
        _ => {}
    }
    items.push(item);
    Ok(())
}

/// Returns a result as the model reads it.
fn told(content: &Fields<'_>) -> Result<Vec<String>, ApiError> {
    let kind = content.required("type")?;
    if kind.ends_with("_error") {
        let code = content.text("error_code")?.unwrap_or_default();
        let why = content.text("error_message")?.unwrap_or_default();
        return Ok(vec![format!("(it has no result: {code} {why})")]);
    }
    if kind.starts_with(EDITOR) {
        let viewed = content.text("content")?;
        return Ok(vec![viewed.unwrap_or_else(|| "(done)".to_owned())]);
    }
    let mut logs = Vec::new();
    logs.extend(content.text("stdout")?.filter(|text| !text.is_empty()));
    let stderr = content.text("stderr")?.filter(|text| !text.is_empty());
    logs.extend(stderr.map(|text| format!("[stderr]\n{text}")));
    if let Some(code) = content.get("return_code").and_then(Value::as_i64) {
        logs.push(format!("[exit code] {code}"));
    }
    Ok(logs)
}
