//! `/api/kernels` and `/api/kernelspecs`.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{OriginalUri, Path, State};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use cellblock_interpreter::json_error;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::caller::Caller;
use super::kernel::{Activity, KernelSpec};
use super::problem::Problem;
use super::state::{HeldKernel, Jupyter};
use crate::bounded::BoundedName;

/// A request for a kernel. What else clients send, such as a path or variables of an environment,
/// concerns kernels of a machine.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StartRequest {
    name: Option<BoundedName>,
}

/// `GET /api/kernelspecs`.
pub(super) async fn specs(_caller: Caller) -> Json<Value> {
    Json(KernelSpec::all())
}

/// `GET /api/kernelspecs/{name}`.
pub(super) async fn spec(_caller: Caller, Path(name): Path<String>) -> Result<Json<Value>, Problem> {
    Ok(Json(Jupyter::spec(Some(&name))?.model()))
}

/// `GET /api/kernels`.
pub(super) async fn list(State(jupyter): State<Jupyter>, Caller(owner): Caller) -> Json<Value> {
    let kernels = jupyter.kernels.of(owner.name()).into_iter();
    Json(kernels.map(|it| it.kept.model(&it.id)).collect())
}

/// `POST /api/kernels`, with or without a body.
pub(super) async fn start(
    State(jupyter): State<Jupyter>,
    Caller(owner): Caller,
    OriginalUri(uri): OriginalUri,
    body: Bytes,
) -> Result<Response, Problem> {
    let asked: StartRequest = json_or_default(&body)?;
    let held = jupyter
        .start(&owner, Jupyter::spec(asked.name.as_ref().map(|it| it.as_str()))?)
        .await?;
    let location = format!("{}/{}", uri.path().trim_end_matches('/'), held.id);
    Ok((
        StatusCode::CREATED,
        [(LOCATION, location)],
        Json(held.kept.model(&held.id)),
    )
        .into_response())
}

/// `GET /api/kernels/{id}`.
pub(super) async fn get(
    State(jupyter): State<Jupyter>,
    Caller(owner): Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    Ok(Json(jupyter.kernel(&owner, &id)?.kept.model(&id)))
}

/// `DELETE /api/kernels/{id}`.
pub(super) async fn delete(
    State(jupyter): State<Jupyter>,
    Caller(owner): Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    jupyter.end(&jupyter.kernel(&owner, &id)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST /api/kernels/{id}/interrupt`.
pub(super) async fn interrupt(
    State(jupyter): State<Jupyter>,
    Caller(owner): Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    jupyter.kernel(&owner, &id)?.session.interrupt();
    Ok(StatusCode::NO_CONTENT)
}

/// `POST /api/kernels/{id}/restart`.
pub(super) async fn restart_route(
    State(jupyter): State<Jupyter>,
    Caller(owner): Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let held = jupyter.kernel(&owner, &id)?;
    restart(&held).await?;
    Ok(Json(held.kept.model(&id)))
}

/// Forgets the variables of a kernel, and ends its processes. Files stay.
pub(super) async fn restart(held: &HeldKernel) -> Result<(), Problem> {
    let kernel = &held.kept;
    let nobody = Map::new();
    // `restarting` would say that the kernel died by itself, and JupyterLab tells its user so.
    kernel
        .publish("status", &nobody, json!({"execution_state": "starting"}))
        .await;
    // What waits is answered as not run.
    kernel.restart();
    // What runs is in the way.
    let turn = held.session.until(std::future::ready(()), held.turn()).await?;
    held.session.reset().await?;
    drop(turn);
    kernel.status(Activity::Idle, &nobody).await;
    Ok(())
}

/// Reads a body of JSON; an empty one is the default.
pub(super) fn json_or_default<T: DeserializeOwned + Default>(body: &Bytes) -> Result<T, Problem> {
    if body.is_empty() {
        return Ok(T::default());
    }
    serde_json::from_slice(body)
        .map_err(|error| Problem::invalid(format!("the body is invalid: {}", json_error::describe(&error))))
}
