//! The tool `tool_search` in a request, and its items of earlier responses.

use serde_json::{Value, json};

use super::fields::{Fields, RequestFields as _};
use super::items::call_id;
use crate::wire::error::ApiError;
use crate::wire::item::ItemStatus;
use crate::wire::search::{MAX_DEFERRED, SearchCall, SearchExecution, SearchOutput, SearchTool};
use crate::wire::tool::Tool;

/// Parses `{"type": "tool_search"}`.
pub(super) fn tool(fields: &Fields<'_>) -> Result<SearchTool, ApiError> {
    let tool = SearchTool {
        execution: execution(fields)?.unwrap_or_default(),
        description: fields.text("description")?,
        parameters: fields.object("parameters")?,
    };
    if tool.execution == SearchExecution::Server && tool.parameters.is_some() {
        let reason = "is for searches of the client; leave it out, or send `\"execution\": \"client\"`";
        return Err(fields.invalid("parameters", "invalid_value", reason));
    }
    Ok(tool)
}

fn execution(fields: &Fields<'_>) -> Result<Option<SearchExecution>, ApiError> {
    match fields.text("execution")?.as_deref() {
        None => Ok(None),
        Some("server") => Ok(Some(SearchExecution::Server)),
        Some("client") => Ok(Some(SearchExecution::Client)),
        Some(other) => Err(fields.unknown("execution", other, "`server` or `client`")),
    }
}

/// Parses the place of a search, and its call id, which only a search of the client has.
fn served(fields: &Fields<'_>) -> Result<(SearchExecution, Option<String>), ApiError> {
    let id = fields.get("call_id").map(|_| call_id(fields)).transpose()?;
    let usual = if id.is_some() {
        SearchExecution::Client
    } else {
        SearchExecution::Server
    };
    let execution = execution(fields)?.unwrap_or(usual);
    if execution == SearchExecution::Client && id.is_none() {
        return Err(fields.missing("call_id"));
    }
    Ok((execution, id))
}

/// Parses `tool_search_call` of an earlier response.
pub(super) fn call(fields: &Fields<'_>, id: String, status: ItemStatus) -> Result<SearchCall, ApiError> {
    let (execution, call_id) = served(fields)?;
    Ok(SearchCall {
        id,
        status,
        execution,
        call_id,
        // Models and their servers know only objects.
        arguments: fields
            .object("arguments")?
            .map_or_else(|| json!({}), Value::Object),
    })
}

/// Parses `tool_search_output`.
pub(super) fn output(fields: &Fields<'_>, id: String, status: ItemStatus) -> Result<SearchOutput, ApiError> {
    let (execution, call_id) = served(fields)?;
    let mut count = 0;
    let tools = fields.each("tools", |fields| {
        let tool = match fields.required("type")?.as_str() {
            "function" | "custom" | "namespace" | "mcp" => super::tools::tool(fields)?,
            other => {
                let known =
                    "`function`, `custom`, `namespace` or `mcp`, because a search loads no other tools";
                return Err(fields.unknown("type", other, known));
            }
        };
        count += tool.offered_as();
        Ok(tool)
    })?;
    if fields.get("tools").and_then(Value::as_array).is_none() {
        return Err(fields.missing("tools"));
    }
    bounded(&fields.path("tools"), count)?;
    Ok(SearchOutput {
        id,
        status,
        execution,
        call_id,
        tools,
    })
}

/// Checks a number of deferred tools.
pub(super) fn bounded(path: &str, count: usize) -> Result<(), ApiError> {
    if count <= MAX_DEFERRED {
        return Ok(());
    }
    let message = format!(
        "`{path}` has {count} deferred tools, those in namespaces counted one by one; at most {MAX_DEFERRED} \
         are allowed"
    );
    Err(ApiError::invalid(path, "array_above_max_length", message))
}

/// Returns the number of functions as which deferred tools are offered once they are loaded, if a search can
/// load them.
pub(super) fn deferred(tools: &[Tool]) -> usize {
    if !tools.iter().any(|tool| matches!(tool, Tool::ToolSearch(_))) {
        return 0;
    }
    let functions = tools.iter().flat_map(Tool::functions);
    let functions = functions.filter(|(_, function)| function.defer_loading).count();
    let customs = tools.iter().flat_map(Tool::customs);
    functions + customs.filter(|(_, custom)| custom.defer_loading).count()
}
