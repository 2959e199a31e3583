//! `GET /v1/models` and `GET /v1/models/{id}`.

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::get;
use serde_json::{Value, json};

use crate::json::Json;
use crate::models::Model;
use crate::problem::Problem;
use crate::state::{Caller, Gateway};

/// The routes. Names of models may have slashes in them.
pub(crate) fn routes() -> Router<Gateway> {
    Router::new()
        .route("/v1/models", get(list))
        .route("/v1/models/{*id}", get(find))
}

async fn list(State(gateway): State<Gateway>, _caller: Caller) -> Json<Value> {
    Json(json!({"object": "list", "data": gateway.models.list().await}))
}

async fn find(
    State(gateway): State<Gateway>,
    _caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Model>, Problem> {
    let found = gateway.models.find(&id).await;
    found
        .map(Json)
        .ok_or_else(|| gateway.models.not_found(&id).into())
}
