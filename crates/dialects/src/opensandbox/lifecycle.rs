//! `/sandboxes/…`: what there is, its end, and where its execd is.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, RawQuery, Request, State as Given};
use axum::http::header::HOST;
use axum::http::{HeaderMap, StatusCode};
use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;
use serde_json::{Value, json};

use super::EXECD_PORT;
use super::access::{Caller, Opened};
use super::error::Problem;
use super::sandbox::{HeldSandbox, State};
use crate::instant::instant;
use crate::presented::{FORWARDED_HOST, header, path};

/// Sandboxes in one page of a list, unless another number is requested.
const PAGE: usize = 20;
/// Maximum number of sandboxes in one page of a list.
const MAX_PAGE: usize = 200;

/// When a sandbox is to end.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RenewRequest {
    expires_at: DateTime<Utc>,
}

pub(super) async fn list(
    Given(state): Given<State>,
    Caller(owner): Caller,
    RawQuery(query): RawQuery,
) -> Result<Json<Value>, Problem> {
    let wanted = Wanted::of(query.as_deref().unwrap_or_default())?;
    let all = state.sandboxes.of(owner.name());
    let found: Vec<_> = all
        .iter()
        .filter(|it| !it.is_expired() && wanted.takes(&it.kept.metadata))
        .collect();
    let pages = found.len().div_ceil(wanted.size);
    let items = found.iter().skip((wanted.page - 1) * wanted.size);
    let items: Vec<_> = items
        .take(wanted.size)
        .map(|it| it.kept.describe(&it.id))
        .collect();
    let pagination = json!({
        "page": wanted.page,
        "pageSize": wanted.size,
        "totalItems": found.len(),
        "totalPages": pages,
        "hasNextPage": wanted.page < pages,
    });
    Ok(Json(json!({"items": items, "pagination": pagination})))
}

pub(super) async fn get(
    Given(state): Given<State>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let held = find(&state, &caller, &id)?;
    Ok(Json(held.kept.describe(&id)))
}

pub(super) async fn delete(
    Given(state): Given<State>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    let held = find(&state, &caller, &id)?;
    state.sandboxes.close(&held).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn renew(
    Given(state): Given<State>,
    caller: Caller,
    Path(id): Path<String>,
    request: Result<Json<RenewRequest>, JsonRejection>,
) -> Result<Json<Value>, Problem> {
    let held = find(&state, &caller, &id)?;
    let Json(RenewRequest { expires_at }) = request?;
    let now = Utc::now();
    let most = state.options.max_lifetime;
    let last = now + TimeDelta::from_std(most).unwrap_or(TimeDelta::MAX);
    if expires_at <= now || expires_at > last {
        let given = instant(expires_at);
        let most = most.as_secs();
        return Err(Problem::invalid(format!(
            "invalid expiresAt `{given}`: must be in the future, and at most {most} seconds from now"
        )));
    }
    held.kept.expires.send_replace(expires_at);
    Ok(Json(json!({"expiresAt": instant(expires_at)})))
}

pub(super) async fn pause(
    Given(state): Given<State>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    find(&state, &caller, &id)?;
    Err(conflict(
        "PAUSE_UNSUPPORTED",
        "sandboxes cannot be paused here; an idle one uses no processor and little memory, so renew its expiration instead",
    ))
}

pub(super) async fn resume(
    Given(state): Given<State>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    find(&state, &caller, &id)?;
    Err(conflict("NOT_PAUSED", "the sandbox is running"))
}

pub(super) async fn snapshot(
    Given(state): Given<State>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    find(&state, &caller, &id)?;
    Err(conflict(
        "SNAPSHOT_UNSUPPORTED",
        "this server keeps no snapshots of sandboxes",
    ))
}

/// Says where a port of a sandbox is, from the address by which the client reaches this server.
pub(super) async fn endpoint(
    Given(state): Given<State>,
    caller: Caller,
    Path((id, port)): Path<(String, u16)>,
    headers: HeaderMap,
    request: Request,
) -> Result<Json<Value>, Problem> {
    let held = find(&state, &caller, &id)?;
    let (parts, _) = request.into_parts();
    let path = path(&parts);
    let own = path.find("/sandboxes/").map_or("", |at| &path[..at]);
    let own = own.strip_suffix("/v1").unwrap_or(own);
    // Another server may have forwarded the request.
    let host = header(&headers, FORWARDED_HOST).or_else(|| header(&headers, HOST.as_str()));
    let host = host.ok_or_else(|| Problem::invalid("the request has no `Host` header"))?;
    let place = if port == EXECD_PORT {
        format!("execd/{id}")
    } else {
        // Clients ask for the sidecar's port when they begin, and use it later or never.
        format!("ports/{id}/{port}")
    };
    Ok(Json(json!({
        "endpoint": format!("{host}{own}/{place}"),
        "headers": {"X-EXECD-ACCESS-TOKEN": held.kept.token},
    })))
}

/// The place of every port but execd's. A client that asks for one may never use it.
pub(super) async fn port(opened: Opened, Path(path): Path<Vec<(String, String)>>) -> Problem {
    drop(opened);
    let port = path.iter().find(|(name, _)| name == "port");
    let port = port.map_or("", |(_, port)| port.as_str());
    Problem::new(
        StatusCode::BAD_REQUEST,
        "PORT_UNSUPPORTED",
        format!(
            "port {port:?} of a sandbox cannot be reached from outside; use execd, which is at port {EXECD_PORT}"
        ),
    )
}

fn find(state: &State, Caller(owner): &Caller, id: &str) -> Result<HeldSandbox, Problem> {
    let found = state.sandboxes.hold(owner.name(), id);
    found.ok_or_else(|| Problem::no_sandbox(id))
}

fn conflict(code: &'static str, message: &str) -> Problem {
    Problem::new(StatusCode::CONFLICT, code, message)
}

/// Which sandboxes a client lists.
#[derive(Debug)]
struct Wanted {
    page: usize,
    size: usize,
    states: Vec<String>,
    metadata: Vec<(String, String)>,
}

impl Wanted {
    fn of(query: &str) -> Result<Self, Problem> {
        let mut wanted = Self {
            page: 1,
            size: PAGE,
            states: Vec::new(),
            metadata: Vec::new(),
        };
        for (name, value) in super::tree::pairs(query) {
            let number = |most: usize| {
                let number = value.parse().ok().filter(|it| (1..=most).contains(it));
                number.ok_or_else(|| {
                    Problem::invalid(format!("invalid {name} `{value}`: must be from 1 to {most}"))
                })
            };
            match name.as_str() {
                "page" => wanted.page = number(usize::MAX)?,
                "pageSize" => wanted.size = number(MAX_PAGE)?,
                "state" => wanted.states.push(value),
                // The client encodes the pairs, and then the parameter.
                "metadata" => wanted.metadata.extend(super::tree::pairs(&value)),
                _ => {}
            }
        }
        Ok(wanted)
    }

    fn takes(&self, metadata: &std::collections::BTreeMap<String, String>) -> bool {
        let state = self.states.is_empty() || self.states.iter().any(|it| it.eq_ignore_ascii_case("Running"));
        state
            && self
                .metadata
                .iter()
                .all(|(name, value)| metadata.get(name) == Some(value))
    }
}
