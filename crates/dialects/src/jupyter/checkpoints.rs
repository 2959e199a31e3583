//! `/api/contents/{path}/checkpoints`: a copy of a file that a client can go back to. Each file has
//! at most one, as Jupyter's server keeps it.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use cellblock_interpreter::hosting::Owner;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::contents::{FIELDS, KernelPath};
use super::problem::Problem;
use super::state::Jupyter;
use super::wire::date;
use crate::files::FileRecord;

/// Id of the only checkpoint of a file.
const CHECKPOINT: &str = "checkpoint";

/// A file whose path is followed by `/checkpoints`, or by that and the id of one.
#[derive(Debug)]
enum CheckpointTarget<'a> {
    All(&'a str),
    One(&'a str),
}

fn target(path: &str) -> Option<CheckpointTarget<'_>> {
    if let Some(file) = path.strip_suffix("/checkpoints") {
        return Some(CheckpointTarget::All(file));
    }
    let (file, id) = path.rsplit_once("/checkpoints/")?;
    (id == CHECKPOINT).then_some(CheckpointTarget::One(file))
}

fn checkpoint(about: &Value) -> Value {
    json!({"id": CHECKPOINT, "last_modified": date(about["modified"].as_f64().unwrap_or(0.0))})
}

/// `GET …/checkpoints`; `None` if the path is not one of checkpoints.
pub(super) async fn list(jupyter: &Jupyter, owner: &Owner, path: &str) -> Option<Result<Value, Problem>> {
    let CheckpointTarget::All(file) = target(path)? else {
        return None;
    };
    let list = async {
        let place = KernelPath::find(jupyter, owner, file)?;
        let found = place.about(&place.checkpoint()).await;
        Ok(found.iter().map(checkpoint).collect())
    };
    Some(list.await)
}

/// `POST …/checkpoints`, which makes one, and `POST …/checkpoints/{id}`, which goes back to it.
pub(super) async fn save_or_restore(
    jupyter: &Jupyter,
    owner: &Owner,
    path: &str,
) -> Option<Result<Response, Problem>> {
    let target = target(path)?;
    let work = async {
        match target {
            CheckpointTarget::All(file) => {
                let place = KernelPath::find(jupyter, owner, file)?;
                let copy = json!({"source": place.inside, "destination": place.checkpoint()});
                let copied: FileRecord = place.does("change.copy", copy).await?;
                Ok((StatusCode::CREATED, Json(checkpoint(&copied.fields(&FIELDS)))).into_response())
            }
            CheckpointTarget::One(file) => {
                let place = KernelPath::find(jupyter, owner, file)?;
                let copy = json!({"source": place.checkpoint(), "destination": place.inside});
                place.does::<IgnoredAny>("change.copy", copy).await?;
                Ok(StatusCode::NO_CONTENT.into_response())
            }
        }
    };
    Some(work.await)
}

/// `DELETE …/checkpoints/{id}`.
pub(super) async fn forget(
    jupyter: &Jupyter,
    owner: &Owner,
    path: &str,
) -> Option<Result<StatusCode, Problem>> {
    let CheckpointTarget::One(file) = target(path)? else {
        return None;
    };
    let work = async {
        let place = KernelPath::find(jupyter, owner, file)?;
        let arguments = json!({ "path": place.checkpoint() });
        place.does::<IgnoredAny>("change.remove", arguments).await?;
        Ok(StatusCode::NO_CONTENT)
    };
    Some(work.await)
}
