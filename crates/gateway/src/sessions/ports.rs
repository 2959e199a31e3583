//! `/v1/sessions/{id}/ports`: ports on which programs of a session listen, and links to them.

use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};

use crate::json::Json;
use crate::listing::ListAnswer;
use crate::preview::{LINKS, PreviewLink, host};
use crate::problem::Problem;
use crate::state::{Caller, Gateway};

/// Maximum time in seconds for which a link is valid.
const MAX_VALID: u64 = 7 * 24 * 3600;
/// The same, unless a request says otherwise.
const VALID: u64 = 3600;

/// A port on which a program listens.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct Port {
    /// Its number.
    port: u16,
    /// Path at which the gateway serves it to callers with a key.
    path: String,
}

/// Properties of a link.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LinkRequest {
    /// Time in seconds for which it is valid: 1 to 604800, by default 3600.
    valid_s: Option<u64>,
}

/// A link to a port, which works without a key.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct PortLink {
    /// Its path at the gateway. Who has it can do all that the program lets its visitors do.
    path: String,
    /// Host at which the path leads to a host of the port's own, if `http.preview_domain` is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    /// Expiry, in seconds since 1970.
    expires_at: u64,
}

/// Lists the ports on which programs of a session listen. One without a network of its own has none.
#[utoipa::path(
    get, operation_id = "list_ports", path = "/v1/sessions/{id}/ports", tag = "sessions",
    params(("id" = String, Path)),
    responses(
        (status = 200, description = "The ports", body = crate::openapi::PortList),
        (status = 404, description = "The caller has no such session", body = crate::openapi::Error),
    )
)]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<ListAnswer<Port>>, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    let ports = held.session.ports().list().await?;
    let port = |port| Port {
        port,
        path: format!("/v1/sessions/{id}/proxy/{port}/"),
    };
    Ok(Json(ListAnswer::new(ports.into_iter().map(port).collect())))
}

/// Makes a signed link to a port, for browsers, which send no key. It ends with its time, or with
/// the session.
#[utoipa::path(
    post, operation_id = "create_port_link", path = "/v1/sessions/{id}/ports/{port}/links", tag = "sessions",
    params(("id" = String, Path), ("port" = u16, Path)),
    request_body = LinkRequest,
    responses(
        (status = 201, description = "The link", body = crate::openapi::PortLink),
        (status = 400, description = "The time is not valid", body = crate::openapi::Error),
        (status = 404, description = "The caller has no such session", body = crate::openapi::Error),
    )
)]
pub(crate) async fn link(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path((id, port)): Path<(String, u16)>,
    Json(request): Json<LinkRequest>,
) -> Result<(StatusCode, Json<PortLink>), Problem> {
    gateway.sessions.find(&caller, &id)?;
    let valid = request.valid_s.unwrap_or(VALID);
    if !(1..=MAX_VALID).contains(&valid) {
        let message = format!("`{valid}` seconds are not between 1 and {MAX_VALID}");
        return Err(Problem::invalid("valid_s", message));
    }
    let domain = gateway.options.http.preview_domain.as_deref();
    let host = domain.map(|domain| host::name(domain, &id, port));
    let link = PreviewLink::new(caller.owner, id, port, Duration::from_secs(valid));
    let path = format!("{LINKS}{}/", link.sign(&gateway).await?);
    let expires_at = link.until;
    let link = PortLink {
        path,
        host,
        expires_at,
    };
    Ok((StatusCode::CREATED, Json(link)))
}
