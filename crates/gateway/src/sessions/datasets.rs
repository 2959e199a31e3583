//! `/v1/sessions/{id}/datasets`: files that code finds in `/tmp/data`, read-only.

use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use cellblock_agent::wire::ApiError;
use cellblock_interpreter::workbench::{DatasetSource, Mounted, Workbench};
use serde::Deserialize;
use tempfile::NamedTempFile;

use super::body;
use crate::json::Json;
use crate::listing::Listed;
use crate::problem::Problem;
use crate::state::{Caller, Gateway};

/// What a dataset is called.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DatasetQuery {
    /// Its file's name, such as `sales.csv`: the extension says what it is.
    name: String,
    /// Convert Parquet or Arrow to CSV.
    #[serde(default)]
    as_csv: bool,
}

/// Adds the body as a dataset, which appears in `/tmp/data` immediately.
#[utoipa::path(
    post, operation_id = "add_dataset", path = "/v1/sessions/{id}/datasets", tag = "sessions",
    params(("id" = String, Path), DatasetQuery),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 201, description = "Its path and contents", body = crate::openapi::Mounted),
        (status = 400, description = "The format does not match the name, or the session has another toolset", body = crate::openapi::Error),
        (status = 413, description = "It is too large", body = crate::openapi::Error),
    )
)]
pub(crate) async fn add(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<DatasetQuery>,
    body: Body,
) -> Result<(StatusCode, Json<Mounted>), Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    let Some(workbench) = held.tools.downcast::<Workbench>() else {
        return Err(ApiError::invalid(
            "id",
            "wrong_toolset",
            "datasets are for sessions with the toolset `workbench`; use `inputs`",
        )
        .into());
    };
    // It is read by its name's end, so it needs one until the session has its own copy.
    let file = temporary(&query.name)?;
    let handle = file
        .reopen()
        .map_err(|error| Problem::internal("keep the dataset", &error))?;
    let options = &gateway.options.sessions;
    let (_, bytes) = body::spool(body, handle, options.max_upload).await?;
    gateway.quotas.upload(&caller.owner, bytes).await?;
    let path = file.path().to_owned();
    let source = if query.as_csv {
        DatasetSource::AsCsv(path)
    } else {
        DatasetSource::File(path)
    };
    let _turn = held.turn().await?;
    held.claim(bytes, options.max_data)?;
    let mounted = match workbench.add_dataset(&query.name, source).await {
        Ok(mounted) => mounted,
        Err(error) => {
            held.release(bytes);
            return Err(error.into());
        }
    };
    Ok((StatusCode::CREATED, Json(mounted)))
}

/// Lists the session's datasets.
#[utoipa::path(
    get, operation_id = "list_datasets", path = "/v1/sessions/{id}/datasets", tag = "sessions",
    params(("id" = String, Path)),
    responses(
        (status = 200, description = "The datasets", body = crate::openapi::MountedList),
        (status = 404, description = "The caller has no such session", body = crate::openapi::Error),
    )
)]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Listed<Mounted>>, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    Ok(Json(Listed::new(held.session.datasets())))
}

fn temporary(name: &str) -> Result<NamedTempFile, Problem> {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let plain = extension.len() <= 10 && extension.chars().all(|c| c.is_ascii_alphanumeric());
    let suffix = if plain && !extension.is_empty() {
        format!(".{extension}")
    } else {
        String::new()
    };
    let made = tempfile::Builder::new()
        .prefix("cellblock-dataset-")
        .suffix(&suffix)
        .tempfile();
    made.map_err(|error| Problem::internal("keep the dataset", &error))
}
