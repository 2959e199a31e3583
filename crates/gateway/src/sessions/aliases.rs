//! `/v1/sessions/{id}/aliases`: tool results that a derivation works on.

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use cellblock_agent::wire::ApiError;
use cellblock_artifact::ArtifactId;
use cellblock_interpreter::alias::{AliasStore, Entry};
use cellblock_interpreter::derivation::Derivation;
use cellblock_interpreter::input::InputFormat;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::body;
use super::inputs::{InputValue, file_of};
use crate::conversions::convert;
use crate::json::Json;
use crate::listing::ListAnswer;
use crate::problem::Problem;
use crate::state::sessions::HostedSession;
use crate::state::{Caller, Gateway};

/// A tool result to record.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AliasRequest {
    /// The tool that returned the result; the alias consists of its name and a number.
    tool: Option<String>,
    /// Custom alias, instead of one derived from the tool's name.
    alias: Option<String>,
    /// Any JSON.
    #[serde(default, deserialize_with = "super::inputs::present")]
    #[schema(value_type = Object)]
    value: Option<Box<RawValue>>,
    /// A table as base64, in `format`.
    data: Option<String>,
    /// The sha256 of one of the caller's artifacts, in `format`.
    artifact: Option<String>,
    /// `value` for JSON, `parquet` or `arrow` for a table.
    #[schema(value_type = Option<String>)]
    format: Option<InputFormat>,
}

/// A recorded tool result.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct AliasAnswer {
    /// `session.alias`.
    object: &'static str,
    /// Its name in code and contracts.
    alias: String,
    /// The tool.
    tool: String,
    format: InputFormat,
    bytes: u64,
    /// Number of rows, if it is a table or a list.
    rows: Option<u64>,
    sha256: ArtifactId,
}

impl From<&Entry> for AliasAnswer {
    fn from(entry: &Entry) -> Self {
        Self {
            object: "session.alias",
            alias: entry.alias.clone(),
            tool: entry.tool.clone(),
            format: entry.format,
            bytes: entry.bytes,
            rows: entry.rows(),
            sha256: entry.sha256,
        }
    }
}

/// Records a tool result: `tool` or `alias`, and one of `value`, `data` and `artifact`. A table
/// counts as a cell.
#[utoipa::path(
    post, operation_id = "record_alias", path = "/v1/sessions/{id}/aliases", tag = "sessions",
    params(("id" = String, Path)),
    request_body = AliasRequest,
    responses(
        (status = 201, description = "The alias", body = crate::openapi::Alias),
        (status = 400, description = "It cannot be recorded, or the session has another toolset",
            body = crate::openapi::Error),
        (status = 404, description = "There is no such session or artifact", body = crate::openapi::Error),
        (status = 429, description = "A quota is used up; see `Retry-After`", body = crate::openapi::Error),
        (status = 503, description = "Too many tables are waiting to be read; see `Retry-After`",
            body = crate::openapi::Error),
    )
)]
pub(crate) async fn add(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<(StatusCode, Json<AliasAnswer>), Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    aliases(&held)?;
    let request: AliasRequest = body::json(&headers, &body)?;
    let given = InputValue {
        value: request.value,
        data: request.data,
        artifact: request.artifact,
        format: request.format,
    };
    let (received, format) = file_of(&gateway, &caller, given, "body").await?;
    let recording = async move {
        let aliases = aliases(&held)?;
        // Its bytes count as being received until the session has a copy.
        let received = received;
        let file = received.content;
        let entry = match (request.tool, request.alias) {
            (_, Some(alias)) => aliases.insert_named(&alias, file, format).await,
            (Some(tool), None) if format == InputFormat::Value => aliases.record_file(&tool, file).await,
            (Some(tool), None) => aliases.record_table(&tool, file, format).await,
            (None, None) => {
                return Err(ApiError::invalid(
                    "tool",
                    "missing_required_parameter",
                    "name the `tool` whose result it is, or give an `alias`",
                )
                .into());
            }
        };
        Ok(entry.map_err(cellblock_interpreter::Error::from)?)
    };
    let entry = if format == InputFormat::Value {
        recording.await?
    } else {
        // Its rows are read and counted.
        convert(&gateway, &caller.owner, recording).await?.0
    };
    Ok((StatusCode::CREATED, Json(AliasAnswer::from(&*entry))))
}

/// Lists the recorded tool results.
#[utoipa::path(
    get, operation_id = "list_aliases", path = "/v1/sessions/{id}/aliases", tag = "sessions",
    params(("id" = String, Path)),
    responses(
        (status = 200, description = "The results, in the order in which they were recorded",
            body = crate::openapi::AliasList),
        (status = 404, description = "The caller has no such session", body = crate::openapi::Error),
    )
)]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<ListAnswer<AliasAnswer>>, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    let entries = aliases(&held)?.entries();
    let answers = entries.iter().map(|entry| AliasAnswer::from(&**entry));
    Ok(Json(ListAnswer::new(answers.collect())))
}

fn aliases(held: &HostedSession) -> Result<&AliasStore, Problem> {
    let derivation = held.tools.downcast::<Derivation>().ok_or_else(|| {
        ApiError::invalid(
            "id",
            "wrong_toolset",
            "aliases are for sessions with the toolset `derivation`",
        )
    })?;
    Ok(derivation.aliases())
}
