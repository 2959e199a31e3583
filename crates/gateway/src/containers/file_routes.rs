//! `/v1/containers/{container}/files`.

use axum::Router;
use axum::extract::{DefaultBodyLimit, FromRequest as _, Path, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use axum::routing::get;
use cellblock_agent::wire::{ApiError, ErrorKind, Ids};
use serde::Deserialize;
use serde_json::Value;

use super::object;
use super::{expired, run, unknown};
use crate::files::{fetch, path, upload};
use crate::json::{Json, deleted};
use crate::listing::{self, QueryParameters};
use crate::problem::Problem;
use crate::records::ContainerFileRow;
use crate::state::{Caller, Gateway};

/// The most files in one answer, and how many there are where nothing is said.
const PAGE: (usize, usize) = (100, 20);

#[derive(Debug, Deserialize)]
struct Add {
    file_id: String,
}

pub(super) fn routes() -> Router<Gateway> {
    Router::new()
        .route("/v1/containers/{container}/files", get(list).post(add))
        .route("/v1/containers/{container}/files/{file}", get(retrieve).delete(remove))
        .route("/v1/containers/{container}/files/{file}/content", get(content))
        // Uploads are counted while they come.
        .layer(DefaultBodyLimit::disable())
}

async fn add(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(container): Path<String>,
    request: Request,
) -> Result<Json<Value>, Problem> {
    let owner = &caller.owner;
    if gateway.records.container(owner, &container).await?.is_none() {
        return Err(unknown(&container).into());
    }
    let held = gateway.containers.registry.hold(owner, &container);
    let held = held.ok_or_else(|| expired(&container, "container_id"))?;
    let kind = request
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let (name, bytes, sha256) = if kind.is_some_and(|kind| kind.starts_with("multipart/")) {
        let uploaded = upload::receive(&gateway, &caller, request).await?;
        (uploaded.name, uploaded.bytes, uploaded.sha256)
    } else {
        let max_body = gateway.options.http.max_body;
        let body = axum::body::to_bytes(request.into_body(), max_body).await;
        let body = body.map_err(|_| Problem::body_too_large(max_body))?;
        let request = Request::builder()
            .header(CONTENT_TYPE, kind_of_json())
            .body(body.into())
            .map_err(|error| fetch::failed(&error))?;
        let Json(add) = Json::<Add>::from_request(request, &()).await.map_err(|_| {
            ApiError::invalid(
                "file",
                "invalid_value",
                "send a file as `multipart/form-data`, or `{\"file_id\": …}` as JSON",
            )
        })?;
        let row = crate::files::find(&gateway, owner, &add.file_id, "file_id").await?;
        (row.filename, u64::try_from(row.bytes).unwrap_or(0), row.sha256)
    };
    let place = path::of_upload(&path::file_name(&name, "file")?);
    let id = Ids::random().mint("cfile");
    run::add(&gateway, &held, id.clone(), place, bytes, sha256, "user").await?;
    run::touch(&gateway, &held).await;
    let row = find(&gateway, owner, &container, &id).await?;
    Ok(Json(object::file(&row)))
}

const fn kind_of_json() -> &'static str {
    "application/json"
}

async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(container): Path<String>,
    query: QueryParameters,
) -> Result<Json<Value>, Problem> {
    if gateway
        .records
        .container(&caller.owner, &container)
        .await?
        .is_none()
    {
        return Err(unknown(&container).into());
    }
    let page = listing::page(&query, PAGE.0, PAGE.1)?;
    let found = gateway
        .records
        .container_files(&caller.owner, &container, page)
        .await?;
    Ok(Json(listing::told(found, object::file)?))
}

async fn retrieve(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path((container, file)): Path<(String, String)>,
) -> Result<Json<Value>, Problem> {
    let row = find(&gateway, &caller.owner, &container, &file).await?;
    Ok(Json(object::file(&row)))
}

async fn content(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path((container, file)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let row = find(&gateway, &caller.owner, &container, &file).await?;
    let name = row.path.rsplit('/').next().unwrap_or_default();
    Ok(fetch::send(&gateway, name, row.bytes, &row.sha256).await?)
}

async fn remove(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path((container, file)): Path<(String, String)>,
) -> Result<Json<Value>, Problem> {
    let row = find(&gateway, &caller.owner, &container, &file).await?;
    let versions = gateway.records.versions_at(&container, &row.path).await?;
    gateway
        .records
        .remove_container_file(&caller.owner, &file)
        .await?;
    fetch::unpin(&gateway, &file).await;
    let current = versions.last().is_some_and(|version| version.id == file);
    if let (true, Some(held)) = (
        current,
        gateway.containers.registry.hold(&caller.owner, &container),
    ) {
        let mut state = held.state.lock().await;
        state.placed.remove(&file);
        // A picture that was only shown, or a file that waits for a sandbox, is not in one.
        if state.sandbox.is_some()
            && let Err(error) = held.session.remove_file(path::inside(&row.path)).await
        {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "remove a file of a sandbox"
            );
        }
    }
    Ok(Json(deleted(&file, "container.file.deleted")))
}

async fn find(
    gateway: &Gateway,
    owner: &str,
    container: &str,
    id: &str,
) -> Result<ContainerFileRow, ApiError> {
    let row = gateway.records.container_file(owner, container, id).await?;
    row.ok_or_else(|| ApiError {
        kind: ErrorKind::NotFound,
        code: Some("container_file_not_found".to_owned()),
        message: format!("there is no file `{id}` in container `{container}`"),
        param: None,
    })
}
