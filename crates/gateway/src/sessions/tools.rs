//! `/v1/sessions/{id}/tools`: the toolset's tools by their names.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use cellblock_interpreter::contract::DerivationCall;
use cellblock_interpreter::derivation::{ChartCall, Derivation, Derived, tools as derivation};
use cellblock_interpreter::report::{CellReport, DerivationReport};
use cellblock_interpreter::workbench::{Workbench, WorkbenchEvent};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::answer::Listed;
use super::body;
use super::held::{HostedSession, Tools};
use super::inputs::unknown;
use super::run::{attended, cell, perform};
use crate::artifacts;
use crate::json::Json;
use crate::problem::Problem;
use crate::state::{Caller, Gateway};

/// Runs a cell.
const RUN_PYTHON: &str = "run_python";

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

/// Arguments of `run_python`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RunPython {
    code: Option<String>,
    requirements: Vec<String>,
    timeout: Option<f64>,
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
) -> Result<Json<Listed<ToolAnswer>>, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    Ok(Json(Listed::new(tools(&held))))
}

/// Calls a tool. If the toolset rejects the call, the status is 200 and the result explains the
/// rejection to the model.
#[utoipa::path(
    post, operation_id = "call_tool", path = "/v1/sessions/{id}/tools/{name}", tag = "sessions",
    params(("id" = String, Path), ("name" = String, Path, description = "Such as `run_python`, `sandbox_exec`, `code_interpreter`")),
    request_body(content = Object, description = "The tool's arguments"),
    responses(
        (status = 200, description = "The tool's answer", body = Object),
        (status = 404, description = "There is no such session or tool", body = crate::openapi::Error),
        (status = 429, description = "Too many requests are waiting for the session", body = crate::openapi::Error),
        (status = 503, description = "No sandbox became available in time; see `Retry-After`", body = crate::openapi::Error),
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
    let known: Vec<_> = tools(&held).into_iter().map(|tool| tool.name).collect();
    let alias = matches!(held.tools, Tools::Interpreter) && name == derivation::CODE_INTERPRETER;
    if !known.contains(&name) && !alias {
        return Err(unknown("tool", &name, &known));
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
    match &held.tools {
        Tools::Interpreter => {
            let asked: RunPython = serde_json::from_value(arguments)
                .map_err(|error| Problem::invalid("arguments", error.to_string()))?;
            let cell = cell(gateway, asked.code, asked.timeout, asked.requirements)?;
            perform(gateway, held, cell, None).await
        }
        Tools::Workbench(workbench) => {
            // Dropped when the call has come to its end.
            let _permit = gateway.quotas.cell(&held.owner).await?;
            let answered = of_workbench(gateway, held, workbench, name, arguments).await?;
            Ok(answered.to_string())
        }
        Tools::Derivation(derivation, _) => {
            let mut derivation = derivation.lock().await;
            let _permit = gateway.quotas.cell(&held.owner).await?;
            let derived = derive(&mut derivation, name, &arguments).await?;
            let report = DerivationReport {
                envelope: derived.envelope(),
                execution: derived.execution.map(|it| CellReport::new(it, |_| None)),
            };
            let made = report.envelope.artifacts.iter();
            let made = made.flat_map(|it| it.ids().map(|id| id.to_string()));
            artifacts::grant(&gateway.records, &held.owner, made.collect::<Vec<_>>()).await?;
            if let Some(execution) = &report.execution {
                artifacts::grant_report(&gateway.records, &held.owner, execution).await?;
            }
            serde_json::to_string(&report).map_err(|error| Problem::internal("write the answer", &error))
        }
    }
}

async fn of_workbench(
    gateway: &Gateway,
    held: &HostedSession,
    workbench: &Workbench,
    name: &str,
    arguments: Value,
) -> Result<Value, Problem> {
    let mut events = workbench.events();
    let mut called = std::pin::pin!(workbench.call(name, arguments));
    let mut pictures = Vec::new();
    let mut note = |event| {
        if let WorkbenchEvent::Visualization { sha256, .. } = event {
            pictures.push(sha256);
        }
    };
    // Heard as they come: what a command writes would push out the pictures, which come last.
    let answered = loop {
        tokio::select! {
            biased;
            Ok(event) = events.recv() => note(event),
            answered = &mut called => break answered?,
        }
    };
    while let Ok(event) = events.try_recv() {
        note(event);
    }
    artifacts::grant(&gateway.records, &held.owner, pictures).await?;
    Ok(answered)
}

async fn derive(derivation: &mut Derivation, name: &str, arguments: &Value) -> Result<Derived, Problem> {
    if name == derivation::RENDER_CHART {
        return match ChartCall::read(arguments) {
            Ok(call) => Ok(derivation.render_chart(&call).await?),
            Err(rejections) => Ok(derivation.refuse("", rejections)),
        };
    }
    match DerivationCall::read(arguments) {
        Ok(call) => Ok(derivation.derive(&call).await?),
        Err(rejections) => Ok(derivation.refuse("", rejections)),
    }
}

fn tools(held: &HostedSession) -> Vec<ToolAnswer> {
    match &held.tools {
        Tools::Interpreter => vec![run_python()],
        Tools::Workbench(workbench) => {
            let definitions = workbench.tools().into_iter();
            let answers = definitions.map(|it| ToolAnswer {
                name: it.name,
                description: it.description,
                parameters: it.input_schema,
            });
            answers.collect()
        }
        Tools::Derivation(..) => {
            let offer = derivation::Offer::default();
            let definitions = [derivation::code_interpreter(offer), derivation::render_chart()];
            let answers = definitions.into_iter().map(|it| ToolAnswer {
                name: it.name,
                description: it.description,
                parameters: it.parameters,
            });
            answers.collect()
        }
    }
}

fn run_python() -> ToolAnswer {
    ToolAnswer {
        name: RUN_PYTHON.to_owned(),
        description: "Runs Python in a sandbox without network. Variables and files stay for later calls. The value of the last \
                      expression is shown."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "code": {"type": "string", "description": "The Python code."},
                "requirements": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Packages that it needs besides those of the image, such as \"six==1.17.0\".",
                },
                "timeout": {"type": "number", "exclusiveMinimum": 0, "description": "Seconds that it may run."},
            },
            "required": ["code"],
            "additionalProperties": false,
        }),
    }
}
