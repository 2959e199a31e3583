//! Calls of a toolset's tools.

use cellblock_interpreter::toolset::{ToolEvent, ToolResult, ToolsetKind};
use serde_json::Value;

use super::arguments::SESSION;
use super::{Call, cell, derivation, json, rehearsal};
use crate::answer::{self, CallAnswer};
use crate::asking::ClientAsker;
use crate::refusal::Refusal;
use crate::shared::McpShared;

/// Calls a tool of this kind; one that `resumes` needs a session.
pub(super) async fn call(
    kind: ToolsetKind,
    resumes: bool,
    server: &McpShared,
    call: &mut Call,
) -> Result<CallAnswer, Refusal> {
    let (handle, arguments) = if kind.runs_cells() {
        cell::arguments(call, &server.options)?
    } else {
        split(call)?
    };
    if resumes && handle.is_none() {
        return Err(Refusal::new(format!(
            "`session_id` is missing: give the handle of the session that `{}` goes on in",
            call.tool
        )));
    }
    let used = call.session(server, handle.as_deref()).await?;
    let Some(toolset) = used.toolset(kind) else {
        return Err(Refusal::new(format!(
            "this session was made without the toolset `{}`: make a new one",
            kind.name
        )));
    };
    let _turn = call.turn(&used).await?;
    if kind.runs_cells() && rehearsal::is_due(call, &used).await? {
        return rehearsal::run(server, call, &used, arguments).await;
    }
    call.asker = ClientAsker::Nobody;
    let _permit = call.permit(server).await?;
    let mut pictures = Vec::new();
    let mut watch = |event| match event {
        ToolEvent::Stdout(bytes) | ToolEvent::Stderr(bytes) => call.progress.wrote(&bytes),
        ToolEvent::Visualization {
            path,
            sha256,
            media_type,
        } => pictures.push((path.to_string_lossy().into_owned(), sha256, media_type)),
    };
    let work = toolset.call(&call.tool, arguments, &mut watch);
    match used.until(call.stop.cancelled(), work).await? {
        ToolResult::Cell { execution, .. } => {
            used.count_cell();
            Ok(answer::told(&used, &execution, server.options.max_tokens))
        }
        // Toolsets of MCP's sessions do not rehearse by themselves.
        ToolResult::Rehearsed { rehearsal, .. } => Ok(answer::told(
            &used,
            &rehearsal.execution,
            server.options.max_tokens,
        )),
        ToolResult::Derived(derived) => Ok(derivation::told(server, &used, &derived)),
        ToolResult::Commands(ran) => json::told(server, &used, serde_json::json!(ran), pictures).await,
        ToolResult::Json(result) => json::told(server, &used, result, pictures).await,
    }
}

/// The session's handle, and the arguments that the toolset reads itself.
fn split(call: &mut Call) -> Result<(Option<String>, Value), Refusal> {
    let mut arguments = call.arguments.take();
    let handle = arguments
        .as_object_mut()
        .and_then(|fields| fields.remove(SESSION));
    match handle {
        Some(Value::String(handle)) => Ok((Some(handle), arguments)),
        None | Some(Value::Null) => Ok((None, arguments)),
        Some(_) => Err(Refusal::new(
            "`session_id` must be a string: give the handle of a session",
        )),
    }
}
