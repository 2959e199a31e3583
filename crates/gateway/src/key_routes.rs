//! `/v1/keys`: keys that an administrator's key makes, lists and revokes.
//!
//! A key is one of an administrator only if it was made so on the command line, or if it is the
//! first: a gateway on loopback without keys is open to everybody on its machine, who may close it.
//! Keys that are made here never make others, so that a secret that leaks cannot hide behind one
//! that it made for that. The API shows no secret but that of a new key, once.

use std::collections::BTreeMap;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::routing::{delete, get};
use cellblock_agent::wire::{ApiError, ErrorKind};
use cellblock_interpreter::builder::BackendKind;
use cellblock_interpreter::limits::NetworkPolicy;
use serde::{Deserialize, Serialize};

use crate::json::Json;
use crate::keys::{ApiKey, ConnectorGrant, KeyTerms, KeysError};
use crate::listing::ListAnswer;
use crate::problem::Problem;
use crate::quotas::{Allowance, Quota};
use crate::sessions::body;
use crate::state::{Administrator, Caller, Gateway};

/// Longest time after which a key expires: ten years.
const MAX_EXPIRY: u64 = 10 * 366 * 24 * 3600;

/// The routes.
pub(crate) fn routes() -> Router<Gateway> {
    Router::new()
        .route("/v1/keys", get(list).post(create))
        .route("/v1/keys/{id}", delete(revoke))
}

/// A key to make.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct KeyRequest {
    /// Name, which no other usable key has: 1 to 100 characters.
    name: String,
    /// Time in seconds after which it expires, at most ten years; by default it does not.
    expires_in: Option<u64>,
    /// Quotas that differ from the configured ones, by name; `null` removes a limit.
    #[schema(value_type = Object)]
    quotas: BTreeMap<Quota, Option<u64>>,
    /// Connectors that its code can call; `*` means all. By default none.
    connectors: Vec<String>,
    /// Weakest backend behind which its code may run: `process`, `gvisor` or `microvm`.
    #[schema(value_type = Option<String>)]
    minimum_backend: Option<BackendKind>,
    /// Widest network of its code: `none`, `loopback` or `egress`. By default that of the server,
    /// which is never exceeded.
    #[schema(value_type = Option<String>)]
    max_network: Option<NetworkPolicy>,
}

/// A key, without its secret.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct ListedKey {
    /// `key`.
    object: &'static str,
    id: String,
    name: String,
    /// Whether it is accepted: it has neither expired nor been revoked.
    usable: bool,
    /// Whether it can make, list and revoke keys.
    admin: bool,
    /// In seconds since 1970, like the others.
    created_at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used_at: Option<u64>,
    /// Quotas that differ from the configured ones, by name; `null` stands for no limit.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    quotas: Allowance,
    /// Connectors that its code can call; `*` means all.
    connectors: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    minimum_backend: Option<BackendKind>,
    /// Widest network of its code, if it is narrower than the server's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    max_network: Option<NetworkPolicy>,
}

/// A key that has just been made.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct NewKey {
    #[serde(flatten)]
    key: ListedKey,
    /// The secret, which is not stored and not shown again.
    secret: String,
}

impl From<ApiKey> for ListedKey {
    fn from(key: ApiKey) -> Self {
        Self {
            object: "key",
            usable: key.is_usable(crate::now()),
            id: key.id,
            name: key.name,
            admin: key.admin,
            created_at: key.created_at,
            expires_at: key.expires_at,
            revoked_at: key.revoked_at,
            last_used_at: key.last_used_at,
            quotas: key.allowance,
            connectors: key.connectors.names().map(str::to_owned).collect(),
            minimum_backend: key.minimum_backend,
            max_network: key.max_network,
        }
    }
}

impl KeyRequest {
    fn terms(self, gateway: &Gateway) -> Result<KeyTerms, ApiError> {
        let invalid = |field: &str, message: String| ApiError::invalid(field, "invalid_value", message);
        if let Some(seconds) = self.expires_in
            && !(1..=MAX_EXPIRY).contains(&seconds)
        {
            let message = format!("invalid expires_in `{seconds}`: must be 1 to {MAX_EXPIRY} seconds");
            return Err(invalid("expires_in", message));
        }
        let offered = &gateway.options.connectors;
        let exists = |name: &String| name == "*" || offered.iter().any(|it| it.name() == name);
        if let Some(unknown) = self.connectors.iter().find(|name| !exists(name)) {
            let message = format!("there is no connector `{unknown}`; `GET /v1/connectors` lists yours");
            return Err(invalid("connectors", message));
        }
        let quotas = self.quotas.into_iter();
        Ok(KeyTerms {
            expires_at: self.expires_in.map(|after| crate::now().saturating_add(after)),
            allowance: quotas.fold(Allowance::default(), |all, (quota, most)| all.with(quota, most)),
            connectors: ConnectorGrant::new(self.connectors),
            minimum_backend: self.minimum_backend,
            max_network: self.max_network,
            ..KeyTerms::default()
        })
    }
}

/// Lists all keys of the server, the oldest first, also those that were revoked. Only for an
/// administrator's key.
#[utoipa::path(
    get, operation_id = "list_keys", path = "/v1/keys", tag = "operations",
    responses(
        (status = 200, description = "The keys", body = crate::openapi::KeyList),
        (status = 403, description = "The key is not an administrator's", body = crate::openapi::Error),
    )
)]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    _: Administrator,
) -> Result<Json<ListAnswer<ListedKey>>, Problem> {
    let keys = gateway.keys.list().await?;
    Ok(Json(ListAnswer::new(
        keys.into_iter().map(ListedKey::from).collect(),
    )))
}

/// Makes a key and returns its secret, once. Only for an administrator's key, or for the first key
/// of a server on loopback: that is an administrator's, and every request needs a key from then on.
/// Keys that are made later cannot make others; `cellblock key create --admin` makes those that
/// can.
#[utoipa::path(
    post, operation_id = "create_key", path = "/v1/keys", tag = "operations",
    request_body = KeyRequest,
    responses(
        (status = 201, description = "The key with its secret", body = crate::openapi::NewKey),
        (status = 400, description = "A field is invalid", body = crate::openapi::Error),
        (status = 403, description = "The key is not an administrator's", body = crate::openapi::Error),
        (status = 409, description = "Another usable key has this name", body = crate::openapi::Error),
    )
)]
pub(crate) async fn create(
    State(gateway): State<Gateway>,
    Administrator(caller): Administrator,
    headers: HeaderMap,
    body: Bytes,
) -> Result<(StatusCode, [(HeaderName, &'static str); 1], Json<NewKey>), Problem> {
    let mut request: KeyRequest = body::json(&headers, &body)?;
    let name = std::mem::take(&mut request.name);
    let terms = request.terms(&gateway)?;
    let (key, secret) = if Caller::is_local(&caller.owner) {
        let terms = KeyTerms { admin: true, ..terms };
        gateway.keys.create_first(&name, terms).await?
    } else {
        gateway.keys.create(&name, terms).await?
    };
    tracing::info!(target: crate::SECURITY, event = "key_created_over_http", key = key.id, by = caller.owner);
    let made = NewKey {
        key: key.into(),
        secret: secret.reveal(),
    };
    Ok((StatusCode::CREATED, [(CACHE_CONTROL, "no-store")], Json(made)))
}

/// Revokes a key, by its ID. Its sessions and files remain until they expire. Only for an
/// administrator's key.
#[utoipa::path(
    delete, operation_id = "revoke_key", path = "/v1/keys/{id}", tag = "operations",
    params(("id" = String, Path)),
    responses(
        (status = 200, description = "The key, which was revoked", body = crate::openapi::Key),
        (status = 403, description = "The key is not an administrator's", body = crate::openapi::Error),
        (status = 404, description = "There is no such usable key", body = crate::openapi::Error),
    )
)]
pub(crate) async fn revoke(
    State(gateway): State<Gateway>,
    Administrator(caller): Administrator,
    Path(id): Path<String>,
) -> Result<Json<ListedKey>, Problem> {
    // A name could become that of another key between a list and this.
    let known = gateway.keys.usable(&id).await?;
    let known = known.ok_or(KeysError::Missing { wanted: id })?;
    let key = gateway.keys.revoke(&known.id).await?;
    tracing::info!(target: crate::SECURITY, event = "key_revoked_over_http", key = key.id, by = caller.owner);
    Ok(Json(key.into()))
}

impl From<KeysError> for Problem {
    fn from(error: KeysError) -> Self {
        let kind = ErrorKind::InvalidRequestError;
        match error {
            KeysError::Name => ApiError::invalid("name", "invalid_value", error.to_string()).into(),
            KeysError::Taken { .. } => Self::new(StatusCode::CONFLICT, kind, "key_exists", error.to_string()),
            KeysError::NotFirst => Self::new(
                StatusCode::FORBIDDEN,
                kind,
                "not_an_administrator",
                error.to_string(),
            ),
            KeysError::Missing { .. } => {
                Self::missing("key_not_found", "there is no usable key with this id")
            }
            KeysError::Records(error) => error.into(),
        }
    }
}
