//! Datasets that sessions have published in the caller's projects.

use std::io::Seek as _;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::HeaderValue;
use axum::http::header::{
    CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, X_CONTENT_TYPE_OPTIONS,
};
use axum::routing::get;
use cellblock_interpreter::project::{DatasetVersion, ExportFormat, LoadError, Project, PublishedDataset};
use serde::Deserialize;

use crate::artifacts;
use crate::conversions::{body_of, convert};
use crate::json::Json;
use crate::listing::ListAnswer;
use crate::problem::Problem;
use crate::state::{Caller, Gateway};

/// The routes.
pub(crate) fn routes() -> Router<Gateway> {
    Router::new()
        .route("/v1/projects/{project}/datasets", get(list))
        .route("/v1/projects/{project}/datasets/{slug}", get(read).delete(remove))
        .route("/v1/projects/{project}/datasets/{slug}/versions", get(versions))
        .route("/v1/projects/{project}/datasets/{slug}/content", get(content))
}

/// Returns a project of the caller.
pub(crate) fn project(gateway: &Gateway, caller: &Caller, name: &str) -> Result<Project, Problem> {
    Ok(Project::new(gateway.store.clone(), &caller.owner, name)?)
}

/// Viewer of a dataset.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LookQuery {
    session: Option<String>,
}

/// In which format to return rows.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ContentQuery {
    #[serde(default)]
    format: ExportFormat,
}

/// Lists the datasets of a project.
#[utoipa::path(
    get, operation_id = "list_project_datasets", path = "/v1/projects/{project}/datasets", tag = "projects",
    params(("project" = String, Path)),
    responses(
        (status = 200, description = "The datasets, sorted by slug; none if nothing was published",
            body = crate::openapi::PublishedDatasetList),
        (status = 400, description = "The name is invalid", body = crate::openapi::Error),
    )
)]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<ListAnswer<PublishedDataset>>, Problem> {
    let datasets = project(&gateway, &caller, &name)?.datasets().await;
    Ok(Json(ListAnswer::new(datasets.map_err(|error| failed(&error))?)))
}

/// Returns what is known of a dataset. With `session`, that session may load it from now on.
#[utoipa::path(
    get, operation_id = "read_project_dataset", path = "/v1/projects/{project}/datasets/{slug}",
    tag = "projects",
    params(
        ("project" = String, Path),
        ("slug" = String, Path),
        ("session" = Option<String>, Query,
            description = "Session of the project that has now looked at the dataset and may load it"),
    ),
    responses(
        (status = 200, description = "The dataset and its current version",
            body = crate::openapi::PublishedDataset),
        (status = 400, description = "The session is not in this project", body = crate::openapi::Error),
        (status = 404, description = "There is no such dataset, or the caller has no such session",
            body = crate::openapi::Error),
    )
)]
pub(crate) async fn read(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path((name, slug)): Path<(String, String)>,
    Query(look): Query<LookQuery>,
) -> Result<Json<PublishedDataset>, Problem> {
    let Some(id) = look.session else {
        return find(&gateway, &caller, &name, &slug).await.map(Json);
    };
    let held = gateway.sessions.find(&caller, &id)?;
    let member = held.session.member().filter(|it| it.project().name() == name);
    let member = member.ok_or_else(|| {
        let message =
            format!("the session is not in the project {name:?}; create it with \"project\": {name:?}");
        Problem::invalid("session", message)
    })?;
    let seen = member.read_dataset(&slug).await;
    seen.map(Json).map_err(|error| match error {
        LoadError::Store(error) => failed(&error),
        _ => missing(&name, &slug),
    })
}

/// Lists the versions of a dataset, oldest first.
#[utoipa::path(
    get, operation_id = "list_project_dataset_versions",
    path = "/v1/projects/{project}/datasets/{slug}/versions", tag = "projects",
    params(("project" = String, Path), ("slug" = String, Path)),
    responses(
        (status = 200, description = "The versions", body = crate::openapi::DatasetVersionList),
        (status = 404, description = "There is no such dataset", body = crate::openapi::Error),
    )
)]
pub(crate) async fn versions(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path((name, slug)): Path<(String, String)>,
) -> Result<Json<ListAnswer<DatasetVersion>>, Problem> {
    find(&gateway, &caller, &name, &slug).await?;
    let versions = project(&gateway, &caller, &name)?.versions(&slug).await;
    Ok(Json(ListAnswer::new(versions.map_err(|error| failed(&error))?)))
}

/// Returns all rows of a dataset's current version. A conversion to CSV or Arrow counts as a cell.
#[utoipa::path(
    get, operation_id = "read_project_dataset_content",
    path = "/v1/projects/{project}/datasets/{slug}/content", tag = "projects",
    params(
        ("project" = String, Path),
        ("slug" = String, Path),
        ("format" = Option<String>, Query,
            description = "`parquet` (the default), `csv`, or `arrow` for an Arrow IPC stream"),
    ),
    responses(
        (status = 200, description = "The rows"),
        (status = 400, description = "The rows have no such form: CSV has no lists and structs",
            body = crate::openapi::Error),
        (status = 404, description = "There is no such dataset", body = crate::openapi::Error),
        (status = 429, description = "A quota of cells is used up; see `Retry-After`",
            body = crate::openapi::Error),
        (status = 503, description = "Too many such requests are waiting; see `Retry-After`",
            body = crate::openapi::Error),
    )
)]
pub(crate) async fn content(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path((name, slug)): Path<(String, String)>,
    Query(ContentQuery { format }): Query<ContentQuery>,
) -> Result<
    (
        [(HeaderName, HeaderValue); 3],
        [(HeaderName, HeaderValue); 1],
        Body,
    ),
    Problem,
> {
    let version = find(&gateway, &caller, &name, &slug).await?.current;
    let media_type = match format {
        ExportFormat::Parquet => "application/vnd.apache.parquet",
        ExportFormat::Csv => "text/csv; charset=utf-8",
        ExportFormat::Arrow => "application/vnd.apache.arrow.stream",
    };
    let headers = [
        (CONTENT_TYPE, media_type),
        (CONTENT_DISPOSITION, "attachment"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    let headers = headers.map(|(name, value)| (name, HeaderValue::from_static(value)));
    if format == ExportFormat::Parquet {
        let stored = gateway.store.metadata(version.sha256).await;
        let length = stored.map_err(|error| failed(&error))?.bytes;
        let body = artifacts::body_of(&gateway.store, version.sha256).await?;
        return Ok((headers, [(CONTENT_LENGTH, HeaderValue::from(length))], body));
    }
    let store = gateway.store.clone();
    let work = async move {
        let failed = |error: std::io::Error| Problem::internal("write the rows of a dataset", &error);
        let file = tempfile::tempfile().map_err(failed)?;
        let mut file = version.export(&store, format, file).await?;
        file.rewind().map_err(failed)?;
        Ok(file)
    };
    let (rows, permit) = convert(&gateway, &caller.owner, work).await?;
    let (length, body) = body_of(rows, permit)?;
    Ok((headers, length, body))
}

/// Removes a dataset with all its versions.
#[utoipa::path(
    delete, operation_id = "remove_project_dataset", path = "/v1/projects/{project}/datasets/{slug}",
    tag = "projects",
    params(("project" = String, Path), ("slug" = String, Path)),
    responses(
        (status = 200, description = "What was removed", body = crate::openapi::PublishedDataset),
        (status = 404, description = "There is no such dataset", body = crate::openapi::Error),
    )
)]
pub(crate) async fn remove(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path((name, slug)): Path<(String, String)>,
) -> Result<Json<PublishedDataset>, Problem> {
    let dataset = find(&gateway, &caller, &name, &slug).await?;
    let removed = project(&gateway, &caller, &name)?.remove(&slug).await;
    removed.map_err(|error| failed(&error))?;
    Ok(Json(dataset))
}

async fn find(
    gateway: &Gateway,
    caller: &Caller,
    name: &str,
    slug: &str,
) -> Result<PublishedDataset, Problem> {
    let found = project(gateway, caller, name)?.dataset(slug).await;
    found
        .map_err(|error| failed(&error))?
        .ok_or_else(|| missing(name, slug))
}

fn missing(project: &str, slug: &str) -> Problem {
    let message = format!("the project {project:?} has no dataset {slug:?}");
    Problem::missing("dataset_not_found", message)
}

fn failed(error: &(dyn std::error::Error + 'static)) -> Problem {
    Problem::internal("read the datasets of a project", error)
}
