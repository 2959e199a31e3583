//! `/v1/sessions/{id}/datasets`: files that code finds in `/tmp/data`, read-only.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use cellblock_agent::wire::ApiError;
use cellblock_interpreter::hosting::uploads::DeclaredSize;
use cellblock_interpreter::workbench::{DatasetMount, DatasetSource, Workbench};
use serde::Deserialize;

use crate::conversions::convert;
use crate::json::Json;
use crate::listing::ListAnswer;
use crate::problem::Problem;
use crate::state::sessions::HostedSession;
use crate::state::{Caller, Gateway};

/// Name of a dataset.
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

/// Adds the body as a dataset, which appears in `/tmp/data` immediately. A conversion (`as_csv`)
/// counts as a cell.
#[utoipa::path(
    post, operation_id = "add_dataset", path = "/v1/sessions/{id}/datasets", tag = "sessions",
    params(("id" = String, Path), DatasetQuery),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 201, description = "Its path and contents", body = crate::openapi::Mounted),
        (
            status = 400,
            description = "The format does not match the name, or the session has another toolset",
            body = crate::openapi::Error
        ),
        (status = 408, description = "It took longer than `uploads.timeout`", body = crate::openapi::Error),
        (status = 413, description = "It is too large", body = crate::openapi::Error),
        (
            status = 429,
            description = "A quota of the key is used up, or too many bytes are being \
                           received; see `Retry-After`",
            body = crate::openapi::Error
        ),
        (status = 503, description = "Too many conversions are waiting; see `Retry-After`",
            body = crate::openapi::Error),
    )
)]
pub(crate) async fn add(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<DatasetQuery>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<DatasetMount>), Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    workbench(&held)?;
    let size = DeclaredSize::of(&headers);
    let mut upload = gateway.begin_upload(&caller, size, gateway.max_upload()).await?;
    // It is read by its name's end, so it needs one until the session has its own copy.
    let (received, path) = upload
        .receive_named(&suffix(&query.name), body.into_data_stream())
        .await?;
    let bytes = received.bytes;
    let source = if query.as_csv {
        DatasetSource::AsCsv(path.to_path_buf())
    } else {
        DatasetSource::File(path.to_path_buf())
    };
    let turn = held.turn().await?;
    held.claim(bytes, gateway.options.sessions.max_data)?;
    let adding = {
        let held = Arc::clone(&held);
        async move {
            let added = workbench(&held)?.add_dataset(&query.name, source).await;
            drop((received, path, turn));
            Ok(added?)
        }
    };
    let mounted = if query.as_csv {
        let converted = convert(&gateway, &caller.owner, adding).await;
        converted.map(|(mounted, _)| mounted)
    } else {
        adding.await
    };
    if mounted.is_err() {
        held.release(bytes);
    }
    let mounted = mounted?;
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
) -> Result<Json<ListAnswer<DatasetMount>>, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    Ok(Json(ListAnswer::new(held.session.datasets())))
}

fn workbench(held: &HostedSession) -> Result<&Workbench, ApiError> {
    held.tools.downcast::<Workbench>().ok_or_else(|| {
        ApiError::invalid(
            "id",
            "wrong_toolset",
            "datasets are for sessions with the toolset `workbench`; use `inputs`",
        )
    })
}

/// Returns the end of a name that says what a file is.
fn suffix(name: &str) -> String {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let plain = extension.len() <= 10 && extension.chars().all(|c| c.is_ascii_alphanumeric());
    if plain && !extension.is_empty() {
        format!(".{extension}")
    } else {
        String::new()
    }
}
