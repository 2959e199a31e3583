//! `GET /v1/models` and `GET /v1/models/{id}`.

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::get;
use serde_json::{Value, json};

use crate::anthropic::{self, IsAnthropic};
use crate::json::Json;
use crate::listing::QueryParameters;
use crate::problem::Problem;
use crate::state::{Caller, Gateway};

/// The routes. Names of models may have slashes in them.
pub(crate) fn routes() -> Router<Gateway> {
    Router::new()
        .route("/v1/models", get(list))
        .route("/v1/models/{*id}", get(find))
}

async fn list(
    State(gateway): State<Gateway>,
    _caller: Caller,
    IsAnthropic(is_anthropic): IsAnthropic,
    query: QueryParameters,
) -> Result<Json<Value>, Problem> {
    let models = gateway.models.list().await;
    if is_anthropic {
        return Ok(Json(anthropic::models::listed(&models, &query)?));
    }
    Ok(Json(json!({"object": "list", "data": models})))
}

async fn find(
    State(gateway): State<Gateway>,
    _caller: Caller,
    IsAnthropic(is_anthropic): IsAnthropic,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let Some(model) = gateway.models.find(&id).await else {
        return Err(gateway.models.not_found(&id).into());
    };
    Ok(Json(if is_anthropic {
        anthropic::models::object(&model)
    } else {
        json!(model)
    }))
}
