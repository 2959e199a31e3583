//! `GET /v1/key`: what a caller's key allows, and what is used of it.

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use cellblock_interpreter::builder::BackendKind;
use cellblock_interpreter::limits::NetworkPolicy;
use serde::Serialize;

use crate::json::Json;
use crate::problem::Problem;
use crate::quotas::QuotaStanding;
use crate::state::{Caller, Gateway};

/// The routes.
pub(crate) fn routes() -> Router<Gateway> {
    Router::new().route("/v1/key", get(read))
}

/// The caller's own key.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct KeyAnswer {
    /// `key`.
    object: &'static str,
    /// ID, which owns what the key makes; `local` without keys.
    id: String,
    /// Name; absent without keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Creation time in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<u64>,
    /// Time from which it is rejected, in seconds since 1970; absent if it does not expire.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<u64>,
    /// Connectors that its code can call, as they were granted; `*` grants all.
    connectors: Vec<String>,
    /// Weakest backend behind which its code may run, if one is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    minimum_backend: Option<&'static str>,
    /// Widest network that its code can use.
    #[schemars(with = "String")]
    max_network: NetworkPolicy,
    /// Whether it can make, list and revoke keys.
    admin: bool,
    /// Every quota with its limit and use.
    quotas: Vec<QuotaStanding>,
}

/// Returns the caller's own key, without its secret, and what is used of its quotas.
#[utoipa::path(
    get, operation_id = "get_own_key", path = "/v1/key", tag = "operations",
    responses((status = 200, description = "The key", body = crate::openapi::OwnKey)),
)]
pub(crate) async fn read(State(gateway): State<Gateway>, caller: Caller) -> Result<Json<KeyAnswer>, Problem> {
    let key = gateway.keys.usable(&caller.owner).await?;
    let quotas = gateway.quotas.standing(&caller.owner).await?;
    let max_network = gateway.max_network(&caller.owner).await?;
    let connectors = match &key {
        Some(key) => key.connectors.names().map(str::to_owned).collect(),
        None => vec!["*".to_owned()],
    };
    Ok(Json(KeyAnswer {
        object: "key",
        id: caller.owner,
        created_at: key.as_ref().map(|key| key.created_at),
        expires_at: key.as_ref().and_then(|key| key.expires_at),
        minimum_backend: key
            .as_ref()
            .and_then(|key| key.minimum_backend)
            .map(BackendKind::name),
        // Without keys, everybody on this machine can make the first.
        admin: key.as_ref().is_none_or(|key| key.admin),
        name: key.map(|key| key.name),
        connectors,
        max_network,
        quotas,
    }))
}
