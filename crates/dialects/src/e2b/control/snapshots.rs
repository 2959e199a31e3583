//! Snapshots: they are made of a sandbox, listed and deleted here. A sandbox is created from one by
//! its name or id.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use cellblock_interpreter::hosting::{HostingError, Owner};
use cellblock_interpreter::session::fork::ForkOptions;
use serde::{Deserialize, Serialize};

use super::super::body::{read, unknown_parameter};
use super::super::error::{Answer, Problem};
use super::super::options::E2bOptions;
use super::super::place::Caller;
use super::super::snapshot::{
    HeldSnapshot, MAX_SNAPSHOTS, SNAPSHOT_ID, Snapshot, SnapshotLabel, UNUSED, copy,
};
use super::super::state::E2b;
use super::branch::copyable;
use super::page::PageRequest;
use super::templates::{self, is_served};
use crate::bounded::BoundedName;
use crate::host::DialectError;
use crate::presented::pairs;

/// Name of the action in errors.
const CREATE: &str = "create a snapshot";

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SnapshotRequest {
    name: Option<BoundedName>,
    memory: Option<bool>,
}

/// A snapshot.
#[derive(Debug, Serialize)]
pub(super) struct SnapshotAnswer {
    #[serde(rename = "snapshotID")]
    id: String,
    names: Vec<String>,
}

impl SnapshotAnswer {
    fn of(held: &HeldSnapshot) -> Self {
        let id = held.kept.label.full();
        let names = held.kept.is_named.then(|| id.clone());
        Self {
            id,
            names: names.into_iter().collect(),
        }
    }
}

/// Copies a sandbox. The copy replaces the snapshot that has its name.
pub(super) async fn create(
    State(e2b): State<E2b>,
    Caller(owner): Caller,
    Path(sandbox): Path<String>,
    body: Bytes,
) -> Answer<(StatusCode, Json<SnapshotAnswer>)> {
    let request: SnapshotRequest = read(&body)?;
    let memory = request.memory.unwrap_or(true);
    let label = request.name.map(|name| label(&name, &e2b.options)).transpose()?;
    let held = copyable(&e2b, &owner, &sandbox, CREATE)?;
    if let Some(label) = &label
        && e2b.has_template(&owner, label.name()).await?
    {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            format!(
                "`name`: {:?} is a template of this key; use another name",
                label.name()
            ),
        ));
    }
    let id = e2b.host.mint(SNAPSHOT_ID);
    let place = e2b.host.reserve(&e2b.snapshots, &owner, &id).await;
    let place = place.map_err(|error| match error {
        DialectError::Hosting(HostingError::OwnerFull {
            held,
            limit: MAX_SNAPSHOTS,
        }) => Problem::new(
            StatusCode::TOO_MANY_REQUESTS,
            format!("{CREATE}: the key has {held} snapshots, the limit is {MAX_SNAPSHOTS}; delete one"),
        ),
        other => other.into(),
    })?;
    let options = ForkOptions {
        ids: vec![id.clone()],
        ..ForkOptions::new(1)
    };
    let (session, contexts) = {
        let turn = held.turn().await?;
        let session = copy(&turn.session, options, CREATE).await?;
        (session, held.kept.contexts.copy())
    };
    e2b.rest(&session, memory).await?;
    if !memory {
        contexts.forget_use();
    }
    let snapshot = Snapshot {
        is_named: label.is_some(),
        label: label.unwrap_or_else(|| SnapshotLabel::new(&id)),
        source: sandbox,
        memory,
        envs: held.kept.envs.clone(),
        workdir: held.kept.workdir.clone(),
        contexts: Arc::new(contexts),
    };
    let made = place.fill(session, UNUSED, snapshot)?;
    replace(&e2b, &owner, &made).await;
    Ok((StatusCode::CREATED, Json(SnapshotAnswer::of(&made))))
}

/// Reads the name of a new snapshot.
fn label(text: &str, options: &E2bOptions) -> Answer<SnapshotLabel> {
    let label = SnapshotLabel::new(text);
    if !label.is_valid() {
        return Err(Problem::invalid(format!(
            "`name`: {text:?} is not the name of a snapshot; use letters, digits, `-`, `_` and `.`, with \
             a tag after a colon, such as \"app:v2\""
        )));
    }
    if is_served(label.name(), options) {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            format!("`name`: {text:?} is a template of this server; use another name"),
        ));
    }
    Ok(label)
}

/// Ends the snapshots that a new one replaces.
async fn replace(e2b: &E2b, owner: &Owner, new: &HeldSnapshot) {
    let age = |created, id: &str| (created, id.to_owned());
    for other in e2b.snapshots.of(owner.name()) {
        let is_older = age(other.created, &other.id) < age(new.created, &new.id);
        if is_older && other.kept.label == new.kept.label {
            e2b.snapshots.end(&other).await;
        }
    }
}

/// Lists a page of snapshots, newest first, and names the next one.
pub(super) async fn list(
    State(e2b): State<E2b>,
    Caller(owner): Caller,
    RawQuery(query): RawQuery,
) -> Answer<(HeaderMap, Json<Vec<SnapshotAnswer>>)> {
    let (mut page, mut source, mut name) = (PageRequest::default(), None, None);
    for (parameter, value) in pairs(&query.unwrap_or_default()) {
        match parameter.as_str() {
            "sandboxID" => source = Some(value),
            "name" => name = Some(value),
            _ if page.read(&parameter, &value)? => {}
            _ => {
                let known = ["sandboxID", "name", "limit", "nextToken"];
                return Err(unknown_parameter(&parameter, &known));
            }
        }
    }
    let mut held = page.select(&e2b.snapshots, owner.name(), |it| {
        source.as_ref().is_none_or(|source| *source == it.kept.source)
            && name.as_ref().is_none_or(|name| it.kept.label.fits(name))
    });
    let next = page.cut(&mut held);
    Ok((next, Json(held.iter().map(SnapshotAnswer::of).collect())))
}

/// Deletes a snapshot, which frees its memory and disk.
pub(in super::super) async fn delete(e2b: &E2b, owner: &Owner, id: &str) -> Answer<StatusCode> {
    let Some(held) = e2b.snapshot(owner, id) else {
        return Err(match templates::check(id, &e2b.options) {
            Ok(()) => Problem::not_served("deletions of templates", "the operator changes the configuration"),
            Err(_) => Problem::not_found(format!("snapshot {id:?} was not found")),
        });
    };
    e2b.snapshots.close(&held).await?;
    Ok(StatusCode::NO_CONTENT)
}
