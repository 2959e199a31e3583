//! Volumes: folders of files that outlive the sandboxes that write them. They are the volumes of the key,
//! also over REST.

use axum::Json;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use bytes::Bytes;
use cellblock_interpreter::hosting::{Owner, ShelfError, VolumeShelf};
use cellblock_interpreter::volume::SessionVolume;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::body::read;
use super::error::{Answer, Problem, shortened};
use super::paths::{HOME, absolute};
use super::place::Caller;
use super::state::E2b;
use super::templates::TEMPLATE_VOLUME;
use crate::bounded::BoundedName;

/// Folder of a sandbox in which its volume is.
pub(super) const FOLDER: &str = "/home/user/volume";

/// A volume of a new sandbox.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VolumeMount {
    name: BoundedName,
    path: BoundedName,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NewVolume {
    name: BoundedName,
}

pub(super) fn routes() -> Router<E2b> {
    Router::new()
        .route("/volumes", get(list).post(create))
        .route("/volumes/{id}", get(detail).delete(remove))
}

async fn create(
    State(e2b): State<E2b>,
    Caller(owner): Caller,
    body: Bytes,
) -> Answer<(StatusCode, Json<Value>)> {
    shelf(&e2b)?;
    let NewVolume { name } = read(&body)?;
    let shelf = own(&e2b, &name)?.clone();
    if shelf.read(&owner, &name).await.is_ok() {
        let message = format!(
            "`name`: the volume {:?} exists; use another name",
            shortened(&name)
        );
        return Err(Problem::new(StatusCode::CONFLICT, message));
    }
    let answer = with_token(&name);
    // Also without the client, it is free for sandboxes afterwards.
    let creating = e2b.host.tasks.spawn(async move {
        let made = shelf.write(&owner, &name, "create").await.map_err(problem)?;
        if let Some(keeper) = made.keeper {
            keeper.release(true).await;
        }
        Ok::<_, Problem>(())
    });
    creating
        .await
        .map_err(|error| Problem::internal("create a volume", &error))??;
    Ok((StatusCode::CREATED, Json(answer)))
}

async fn list(State(e2b): State<E2b>, Caller(owner): Caller) -> Answer<Json<Vec<Value>>> {
    let all = shelf(&e2b)?.list(&owner).await.map_err(problem)?;
    let own = all.iter().filter(|it| !it.name.starts_with(TEMPLATE_VOLUME));
    let list = own.map(|it| json!({"volumeID": it.name, "name": it.name}));
    Ok(Json(list.collect()))
}

async fn detail(
    State(e2b): State<E2b>,
    Caller(owner): Caller,
    Path(id): Path<String>,
) -> Answer<Json<Value>> {
    let volume = own(&e2b, &id)?.read(&owner, &id).await.map_err(problem)?;
    Ok(Json(with_token(&volume.name)))
}

async fn remove(State(e2b): State<E2b>, Caller(owner): Caller, Path(id): Path<String>) -> Answer<StatusCode> {
    own(&e2b, &id)?.remove(&owner, &id).await.map_err(problem)?;
    Ok(StatusCode::NO_CONTENT)
}

impl VolumeMount {
    /// Rejects mounts that a sandbox would not have.
    pub(super) fn check(mounts: &[Self]) -> Answer<()> {
        if let [_, second, ..] = mounts {
            let why = "a sandbox has one volume; mount one";
            return Err(Problem::unenforced("volumeMounts", second, why));
        }
        for mount in mounts {
            let path = absolute(&mount.path);
            let is_possible =
                path.starts_with(&format!("{HOME}/")) && !path.starts_with(&format!("{FOLDER}/"));
            if !is_possible {
                let why = format!("a volume is below {HOME}; mount it at `{FOLDER}`");
                return Err(Problem::unenforced("volumeMounts.path", &mount.path, &why));
            }
        }
        Ok(())
    }

    /// Returns the path of a link to the folder, if it is mounted elsewhere.
    pub(super) fn link(&self) -> Option<String> {
        let path = absolute(&self.path);
        (path != FOLDER).then_some(path)
    }

    /// Opens the volume for a sandbox, which writes it until it ends.
    pub(super) async fn open(&self, e2b: &E2b, owner: &Owner, sandbox: &str) -> Answer<SessionVolume> {
        let volumes = own(e2b, &self.name)?;
        volumes.read(owner, &self.name).await.map_err(problem)?;
        volumes.write(owner, &self.name, sandbox).await.map_err(problem)
    }
}

/// Describes a volume. Requests about its files, which the token would open, are not served.
fn with_token(name: &str) -> Value {
    json!({"volumeID": name, "name": name, "token": ""})
}

/// Returns the shelf for a volume that is not one of a template.
fn own<'a>(e2b: &'a E2b, name: &str) -> Answer<&'a std::sync::Arc<dyn VolumeShelf>> {
    if name.starts_with(TEMPLATE_VOLUME) {
        return Err(Problem::not_found(format!(
            "the volume {:?} is a template; its name is without `{TEMPLATE_VOLUME}`",
            shortened(name)
        )));
    }
    shelf(e2b)
}

pub(super) fn shelf(e2b: &E2b) -> Answer<&std::sync::Arc<dyn VolumeShelf>> {
    e2b.host
        .volumes
        .as_ref()
        .ok_or_else(|| Problem::not_served("volumes", "this server keeps none; write files into the sandbox"))
}

/// Names the reason that a volume cannot be used.
pub(super) fn problem(error: ShelfError) -> Problem {
    let (status, message) = match error {
        ShelfError::Missing(message) => (StatusCode::NOT_FOUND, message),
        ShelfError::Held(message) => (StatusCode::CONFLICT, message),
        ShelfError::Invalid(message) => (StatusCode::BAD_REQUEST, message),
        ShelfError::Full(message) => (StatusCode::TOO_MANY_REQUESTS, message),
        ShelfError::Failed(message) => (StatusCode::INTERNAL_SERVER_ERROR, message),
    };
    Problem::new(status, message)
}
