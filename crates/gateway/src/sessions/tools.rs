//! `/v1/sessions/{id}/tools`: the toolset's tools by their names.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use cellblock_interpreter::derivation::tools::CODE_INTERPRETER;
use cellblock_interpreter::report::DerivationReport;
use cellblock_interpreter::toolset::{ToolDefinition, ToolEvent, ToolResult, python};
use serde::Serialize;
use serde_json::Value;

use super::body;
use super::inputs::unknown;
use super::run::{attended, finish};
use crate::artifacts;
use crate::json::Json;
use crate::listing::ListAnswer;
use crate::problem::Problem;
use crate::state::sessions::HostedSession;
use crate::state::{Caller, Gateway};

/// A tool, for listing to a model.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct ToolAnswer {
    /// Its name.
    name: String,
    /// Description of the tool.
    description: String,
    /// The JSON Schema of its arguments.
    parameters: Value,
}

impl From<ToolDefinition> for ToolAnswer {
    fn from(tool: ToolDefinition) -> Self {
        Self {
            name: tool.name,
            description: tool.description,
            parameters: tool.input_schema.into(),
        }
    }
}

/// Lists the session's tools.
#[utoipa::path(
    get, operation_id = "list_tools", path = "/v1/sessions/{id}/tools", tag = "sessions",
    params(("id" = String, Path)),
    responses(
        (status = 200, description = "The tools, with JSON Schemas", body = crate::openapi::ToolList),
        (status = 404, description = "The caller has no such session", body = crate::openapi::Error),
    )
)]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<ListAnswer<ToolAnswer>>, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    let definitions = held.definitions().iter().cloned();
    Ok(Json(ListAnswer::new(definitions.map(ToolAnswer::from).collect())))
}

/// Calls a tool. If the toolset rejects the call, the status is 200 and the result explains the
/// rejection to the model.
#[utoipa::path(
    post, operation_id = "call_tool", path = "/v1/sessions/{id}/tools/{name}", tag = "sessions",
    params(
        ("id" = String, Path),
        ("name" = String, Path, description = "Such as `run_python`, `sandbox_exec`, `code_interpreter`"),
    ),
    request_body(content = Object, description = "The tool's arguments"),
    responses(
        (status = 200, description = "The tool's answer", body = Object),
        (status = 404, description = "There is no such session or tool", body = crate::openapi::Error),
        (status = 429, description = "Too many requests are waiting for the session",
            body = crate::openapi::Error),
        (status = 503, description = "No sandbox became available in time; see `Retry-After`",
            body = crate::openapi::Error),
    )
)]
pub(crate) async fn call(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path((id, name)): Path<(String, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    let known = held.definitions().iter().map(|tool| tool.name.as_str());
    let alias = held.toolset == python::KIND && name == CODE_INTERPRETER;
    if !alias && !known.clone().any(|it| it == name) {
        return Err(unknown("tool", &name, &known.collect::<Vec<_>>()));
    }
    let arguments: Value = body::json(&headers, &body)?;
    let turn = held.turn().await?;
    let work = {
        let (gateway, held) = (gateway.clone(), Arc::clone(&held));
        async move { answer(&gateway, &held, &name, arguments).await }
    };
    let json = attended(&gateway, turn, work).await?;
    Ok(([(CONTENT_TYPE, "application/json")], json).into_response())
}

async fn answer(
    gateway: &Gateway,
    held: &HostedSession,
    name: &str,
    arguments: Value,
) -> Result<String, Problem> {
    // Dropped when the call has come to its end.
    let permit = gateway.quotas.of_session(&held.id).cell(&held.owner).await?;
    let mut pictures = Vec::new();
    let mut watch = |event| {
        if let ToolEvent::Visualization { sha256, .. } = event {
            pictures.push(sha256);
        }
    };
    match held.tools.call(name, arguments, &mut watch).await? {
        ToolResult::Cell { code, execution } => finish(gateway, held, permit, code, *execution, None).await,
        // Sessions of REST open no toolset that rehearses.
        ToolResult::Rehearsed { code, rehearsal } => {
            finish(gateway, held, permit, code, rehearsal.execution, None).await
        }
        ToolResult::Derived(derived) => {
            let mut report = DerivationReport::from(*derived);
            let made = report.envelope.artifacts.iter();
            let made = made.flat_map(|it| it.ids().map(|id| id.to_string()));
            let note = artifacts::grant_made(&gateway.records, &held.owner, made.collect()).await;
            artifacts::add_note(&mut report.envelope.note, note);
            if let Some(execution) = &mut report.execution {
                artifacts::grant_report(&gateway.records, &held.owner, execution).await;
            }
            serde_json::to_string(&report).map_err(|error| Problem::internal("write the answer", &error))
        }
        ToolResult::Commands(ran) => {
            serde_json::to_string(&ran).map_err(|error| Problem::internal("write the answer", &error))
        }
        ToolResult::Json(result) => {
            // The tool has its result, also without its pictures.
            let _ = artifacts::grant_made(&gateway.records, &held.owner, pictures).await;
            Ok(result.to_string())
        }
    }
}
