//! Routes of templates and their builds.

use axum::Json;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, RawQuery, State};
use axum::http::StatusCode;
use axum::routing::{any, get, post, put};
use bytes::Bytes;
use serde_json::Value;

use super::super::body::{read, unknown_parameter};
use super::super::control::{delete_snapshot, is_served, off_template};
use super::super::error::{Answer, Problem, shortened};
use super::super::place::Caller;
use super::super::snapshot::SnapshotLabel;
use super::super::state::E2b;
use super::answer::{self, StatusAnswer};
use super::builds::BuildStatus;
use super::index::{check_tags, is_template_name};
use super::log::PART;
use super::request::{BuildStart, NewBuild};
use super::{run, tags, upload};
use crate::presented::pairs;

/// Paths about templates that are not served.
const OFF: [&str; 7] = [
    "/v2/templates/{id}",
    "/templates/{id}/builds/{build}",
    "/templates/{id}/builds/{build}/logs",
    "/templates/{id}/tags/count",
    "/templates/{id}/tags/exists",
    "/templates/{id}/tags/groups",
    "/templates/{id}/tags/{tag}/assignments",
];

pub(in super::super) fn routes() -> Router<E2b> {
    let off = OFF.iter().fold(Router::new(), |router, path| {
        router.route(path, any(off_template))
    });
    Router::new()
        .route("/v3/templates", post(request))
        .route("/templates", any(off_template).get(list))
        .route("/v2/templates", any(off_template).get(list))
        .route("/templates/tags", post(tags::assign).delete(tags::remove))
        .route("/templates/{id}", any(off_template).get(detail).delete(delete))
        .route("/templates/{id}/tags", get(tags::list))
        .route("/templates/{id}/files/{hash}", get(upload::link))
        .route("/templates/{id}/builds/{build}/status", get(status))
        .route("/v2/templates/{id}/builds/{build}", post(start))
        .merge(off)
}

/// The route whose bodies are files.
pub(in super::super) fn upload_routes() -> Router<E2b> {
    Router::new()
        .route("/templates/uploads/{token}", put(upload::receive))
        .layer(DefaultBodyLimit::disable())
}

/// Makes a build, which a client gives files and steps.
async fn request(
    State(e2b): State<E2b>,
    Caller(owner): Caller,
    body: Bytes,
) -> Answer<(StatusCode, Json<Value>)> {
    if e2b.options.builds.is_none() {
        return Err(Problem::not_served(
            "builds of templates",
            "the operator switches them on with `dialects: {e2b: {builds: {}}}`",
        ));
    }
    if e2b.host.volumes.is_none() {
        let instead = "templates are kept in volumes, which this server does not have";
        return Err(Problem::not_served("builds of templates", instead));
    }
    let request: NewBuild = read(&body)?;
    request.check(&e2b)?;
    let label = SnapshotLabel::new(request.name()?);
    if !is_template_name(label.name()) {
        return Err(Problem::invalid(format!(
            "`name`: {:?} is not the name of a template; use up to 48 lowercase letters, digits, `-`, `_` \
             and `.`, with a tag after a colon, such as \"app:v1\"",
            shortened(label.name())
        )));
    }
    let is_taken = is_served(label.name(), &e2b.options) || e2b.snapshot(&owner, label.name()).is_some();
    if is_taken {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            format!(
                "`name`: {:?} is a template of this server, or a snapshot; use another name",
                label.name()
            ),
        ));
    }
    let tags = request.tags.as_ref().map(|it| it.to_vec()).unwrap_or_default();
    let tags = check_tags(&label, tags)?;
    let build = e2b.begin_build(&owner, label.name().to_owned(), tags)?;
    Ok((StatusCode::ACCEPTED, Json(answer::requested(&build))))
}

/// Starts a build. It runs on without the client.
async fn start(
    State(e2b): State<E2b>,
    Caller(owner): Caller,
    Path((name, id)): Path<(String, String)>,
    body: Bytes,
) -> Answer<StatusCode> {
    let build = e2b.builds.find(&owner, &name, &id);
    let build = build.ok_or_else(|| missing(&name, &id))?;
    build.check_unstarted()?;
    let request: BuildStart = read(&body)?;
    let base = request.check(&e2b, &build)?;
    build.start()?;
    let building = e2b.clone();
    e2b.host
        .tasks
        .spawn(async move { run::run(&building, &build, base, request).await });
    Ok(StatusCode::ACCEPTED)
}

/// Returns how far a build is, with the next part of its log.
async fn status(
    State(e2b): State<E2b>,
    Caller(owner): Caller,
    Path((name, id)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> Answer<Json<StatusAnswer>> {
    let (mut offset, mut limit) = (0, PART);
    for (parameter, value) in pairs(&query.unwrap_or_default()) {
        match parameter.as_str() {
            "logsOffset" => offset = number(&parameter, &value)?,
            "limit" => limit = number(&parameter, &value)?,
            _ => return Err(unknown_parameter(&parameter, &["logsOffset", "limit"])),
        }
    }
    let mut found = StatusAnswer {
        template: name.clone(),
        build: id.clone(),
        status: BuildStatus::Ready,
        logs: [],
        log_entries: Vec::new(),
        reason: None,
    };
    if let Some(build) = e2b.builds.find(&owner, &name, &id) {
        let view = build.view(offset, limit);
        (found.status, found.reason, found.log_entries) = (view.status, view.reason, view.entries);
        return Ok(Json(found));
    }
    // The log of a build ends with its server.
    let kept = e2b.kept_template(&owner, &name).await?;
    match kept.filter(|it| it.index.builds.contains_key(&id)) {
        Some(_) => Ok(Json(found)),
        None => Err(missing(&name, &id)),
    }
}

/// Lists the templates of the key.
async fn list(
    State(e2b): State<E2b>,
    Caller(owner): Caller,
    RawQuery(query): RawQuery,
) -> Answer<Json<Vec<Value>>> {
    let mut limit = usize::MAX;
    for (parameter, value) in pairs(&query.unwrap_or_default()) {
        if parameter != "limit" {
            return Err(unknown_parameter(&parameter, &["limit"]));
        }
        limit = number(&parameter, &value)?;
    }
    let kept = e2b.kept_templates(&owner).await?;
    let all = kept
        .iter()
        .take(limit)
        .map(|(name, it)| answer::template(&e2b, name, it, false));
    Ok(Json(all.collect()))
}

fn number(parameter: &str, value: &str) -> Answer<usize> {
    value.parse().map_err(|_| {
        let value = shortened(value);
        Problem::invalid(format!("invalid {parameter} `{value}`: must be a number"))
    })
}

async fn detail(
    State(e2b): State<E2b>,
    Caller(owner): Caller,
    Path(name): Path<String>,
) -> Answer<Json<Value>> {
    let kept = tags::known(&e2b, &owner, &name).await?;
    let name = SnapshotLabel::new(&name);
    Ok(Json(answer::template(&e2b, name.name(), &kept, true)))
}

/// Deletes a snapshot, or a template with all builds. Sandboxes that began from it continue.
async fn delete(
    State(e2b): State<E2b>,
    Caller(owner): Caller,
    Path(name): Path<String>,
) -> Answer<StatusCode> {
    if e2b.snapshot(&owner, &name).is_none() && e2b.remove_template(&owner, &name).await? {
        return Ok(StatusCode::NO_CONTENT);
    }
    delete_snapshot(&e2b, &owner, &name).await
}

fn missing(name: &str, id: &str) -> Problem {
    Problem::not_found(format!(
        "template '{name}' has no build {id:?}; request one with `POST /v3/templates`"
    ))
}
