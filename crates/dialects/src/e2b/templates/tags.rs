//! Tags of templates.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use bytes::Bytes;
use cellblock_interpreter::hosting::Owner;
use cellblock_settings::clock;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::body::read;
use super::super::error::{Answer, Problem};
use super::super::place::Caller;
use super::super::snapshot::SnapshotLabel;
use super::super::state::E2b;
use super::builds::time_of;
use super::index::{KeptTemplate, TagRecord, check_tags};
use crate::bounded::{BoundedDescription, BoundedName};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TagAssignment {
    target: BoundedName,
    tags: BoundedDescription<Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TagRemoval {
    name: BoundedName,
    tags: BoundedDescription<Vec<String>>,
}

/// Returns a template of the key.
pub(super) async fn known(e2b: &E2b, owner: &Owner, name: &str) -> Answer<KeptTemplate> {
    let kept = e2b.kept_template(owner, SnapshotLabel::new(name).name()).await?;
    kept.ok_or_else(|| Problem::not_found(format!("template '{name}' not found; build it first")))
}

/// Assigns tags to the build that `name:tag` means.
pub(super) async fn assign(
    State(e2b): State<E2b>,
    Caller(owner): Caller,
    body: Bytes,
) -> Answer<(StatusCode, Json<Value>)> {
    let request: TagAssignment = read(&body)?;
    let label = SnapshotLabel::new(&request.target);
    let kept = known(&e2b, &owner, &request.target).await?;
    let (build, _) = kept
        .tagged(label.tag())
        .ok_or_else(|| Problem::not_found(format!("`target`: the template has no tag `{}`", label.tag())))?;
    let tags = request.tags.into_inner();
    if tags.is_empty() {
        return Err(Problem::invalid("`tags` is empty; name a tag to assign"));
    }
    check_tags(&SnapshotLabel::new(label.name()), tags.clone())?;
    let (id, assigned) = (build.to_owned(), tags.clone());
    let answer = json!({"buildID": id, "tags": tags});
    e2b.change_template(&owner, label.name(), None, move |index| {
        if !index.builds.contains_key(&id) {
            return Err(Problem::not_found("the build was removed meanwhile"));
        }
        index.assign(&id, &assigned, clock::unix_millis())
    })
    .await?;
    Ok((StatusCode::CREATED, Json(answer)))
}

/// Removes tags. Builds without another one are removed with them.
pub(super) async fn remove(State(e2b): State<E2b>, Caller(owner): Caller, body: Bytes) -> Answer<StatusCode> {
    let request: TagRemoval = read(&body)?;
    let kept = known(&e2b, &owner, &request.name).await?;
    let tags = request.tags.into_inner();
    if let Some(unknown) = tags.iter().find(|tag| !kept.index.tags.contains_key(*tag)) {
        return Err(Problem::not_found(format!(
            "`tags`: the template has no tag {unknown:?}"
        )));
    }
    let label = SnapshotLabel::new(&request.name);
    e2b.change_template(&owner, label.name(), None, move |index| {
        index.tags.retain(|tag, _| !tags.contains(tag));
        index.forget();
        Ok(())
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Lists the tags of a template.
pub(super) async fn list(
    State(e2b): State<E2b>,
    Caller(owner): Caller,
    Path(name): Path<String>,
) -> Answer<Json<Value>> {
    let kept = known(&e2b, &owner, &name).await?;
    let one = |(tag, record): (&String, &TagRecord)| {
        let assigned = time_of(record.assigned_ms);
        json!({"tag": tag, "buildID": record.build, "createdAt": assigned})
    };
    Ok(Json(kept.index.tags.iter().map(one).collect()))
}
