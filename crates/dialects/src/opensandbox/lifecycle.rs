//! `/sandboxes/…`: what there is, its end, and where its execd is.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, RawQuery, Request, State as Given};
use axum::http::header::HOST;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use cellblock_interpreter::egress::inbound::{PageOrigin, ProgramPort};
use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;
use serde_json::{Value, json};

use super::access::{Caller, ExecdSandbox, KEY, TOKEN};
use super::create::{ENTRIES, SandboxMetadata};
use super::error::Problem;
use super::sandbox::{HeldSandbox, Sandbox, State, lock};
use super::{EGRESS_PORT, EXECD_PORT};
use crate::forward::{ForwardFailure, mounted_at, to_program};
use crate::instant::instant;
use crate::presented::{FORWARDED_HOST, header, pairs, path};

/// Sandboxes in one page of a list, unless another number is requested.
const PAGE: usize = 20;
/// Maximum number of sandboxes in one page of a list.
const MAX_PAGE: usize = 200;

/// Request for another end of a sandbox.
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
    let wanted = SandboxFilter::of(query.as_deref().unwrap_or_default())?;
    let all = state.sandboxes.of(owner.name());
    let found: Vec<_> = all
        .iter()
        .filter(|it| !it.is_expired() && wanted.takes(&it.kept))
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
    if held.kept.status() == "Paused" {
        return Err(Problem::paused(&id));
    }
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

/// Pauses a sandbox: it stays in memory, cannot be used, and does not reach its end, until it is resumed.
pub(super) async fn pause(
    Given(state): Given<State>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    let most = TimeDelta::from_std(state.options.max_lifetime).unwrap_or(TimeDelta::MAX);
    if find(&state, &caller, &id)?.kept.pause(most) {
        return Ok(StatusCode::ACCEPTED);
    }
    Err(conflict("ALREADY_PAUSED", "the sandbox is paused"))
}

pub(super) async fn resume(
    Given(state): Given<State>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    if find(&state, &caller, &id)?.kept.resume() {
        return Ok(StatusCode::ACCEPTED);
    }
    Err(conflict("NOT_PAUSED", "the sandbox is running"))
}

/// Changes metadata: an entry without a value is removed, and others stay.
pub(super) async fn patch_metadata(
    Given(state): Given<State>,
    caller: Caller,
    Path(id): Path<String>,
    request: Result<Json<BTreeMap<String, Option<String>>>, JsonRejection>,
) -> Result<Json<Value>, Problem> {
    let held = find(&state, &caller, &id)?;
    let Json(changes) = request?;
    {
        let mut metadata = lock(&held.kept.metadata);
        let mut entries = metadata.clone().into_inner();
        for (name, value) in changes {
            match value {
                Some(value) => entries.insert(name, value),
                None => entries.remove(&name),
            };
        }
        if entries.len() > ENTRIES {
            let count = entries.len();
            return Err(Problem::invalid(format!(
                "`metadata` would have {count} entries, the limit is {ENTRIES}; remove some with null"
            )));
        }
        *metadata = SandboxMetadata::new(entries)
            .map_err(|error| Problem::invalid(format!("`metadata` would be {error}")))?;
    }
    Ok(Json(held.kept.describe(&id)))
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
    if parts
        .uri
        .query()
        .is_some_and(|it| pairs(it).iter().any(|(name, _)| name == "expires"))
    {
        return Err(Problem::unsupported(
            "signed endpoints are not supported; leave `expires` out, and send the header of the answer",
        ));
    }
    // Another server may have forwarded the request.
    let host = header(&headers, FORWARDED_HOST).or_else(|| header(&headers, HOST.as_str()));
    let host = host.ok_or_else(|| Problem::invalid("the request has no `Host` header"))?;
    let place = if port == EXECD_PORT {
        format!("execd/{id}")
    } else {
        format!("ports/{id}/{port}")
    };
    Ok(Json(json!({
        "endpoint": format!("{host}{own}/{place}"),
        "headers": {"X-EXECD-ACCESS-TOKEN": held.kept.token},
    })))
}

/// Forwards a request to the program that listens on a port.
pub(super) async fn port(
    Given(state): Given<State>,
    ExecdSandbox { sandbox, .. }: ExecdSandbox,
    Path(segments): Path<Vec<(String, String)>>,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let port = segments.iter().find(|(name, _)| name == "port");
    let port = port.map_or("", |(_, port)| port.as_str());
    // As it was sent, and not decoded.
    let prefix = format!("/ports/{}/{port}", sandbox.id);
    let port: u16 = port
        .parse()
        .map_err(|_| Problem::invalid(format!("`{port}` is not the number of a port")))?;
    if port == EGRESS_PORT {
        return Err(not_served(
            parts.uri.path().strip_prefix(&prefix).unwrap_or_default(),
        ));
    }
    let dialect = mounted_at(path(&parts), &parts.uri);
    // A program may have a use for `Authorization` if it did not open the sandbox.
    let is_opened = parts.headers.contains_key(TOKEN) || parts.headers.contains_key(KEY);
    let program = ProgramPort {
        port,
        origin: PageOrigin::Server {
            root: Some(format!("{dialect}{prefix}")),
            is_readable: false,
        },
        private: if is_opened {
            &[TOKEN, KEY]
        } else {
            &["authorization"]
        },
    };
    let request = Request::from_parts(parts, body);
    let answer = to_program(&state.host, sandbox, &program, &prefix, request).await;
    answer.map_err(|reason| match reason {
        ForwardFailure::Path(path) => Problem::invalid(format!("`{path}` is not a path")),
        ForwardFailure::Closed(error) => error.into(),
        ForwardFailure::Broken(error) => Problem::new(
            StatusCode::BAD_GATEWAY,
            "PORT_BROKEN",
            format!("the program on port {port} did not answer in HTTP: {error}"),
        ),
    })
}

/// Parts of the protocol that this server does not have, by a segment of their paths.
const NOT_SERVED: [(&str, &str); 8] = [
    (
        "isolated",
        "isolated sessions are not supported; create another sandbox",
    ),
    (
        "diagnostics",
        "diagnostics are not supported; execd's `/metrics` has what programs use",
    ),
    (
        "networkpolicy",
        "network policies are set when a sandbox is created",
    ),
    ("policy", "network policies are set when a sandbox is created"),
    (
        "credential-vault",
        "the server's operator sets credentials of its proxy",
    ),
    (
        "templates",
        "templates are not supported; sandboxes start from the server's image",
    ),
    ("snapshots", "this server keeps no snapshots of sandboxes"),
    ("metrics", "metrics are not streamed; ask for `/metrics`"),
];

/// Answers a request for which there is no route: with the name of what is not supported, if the
/// protocol has it.
pub(super) fn not_served(path: &str) -> Problem {
    let known = path
        .split(['/', '?'])
        .find_map(|part| NOT_SERVED.iter().find(|(name, _)| *name == part));
    known.map_or_else(Problem::unknown_route, |(_, why)| Problem::unsupported(*why))
}

fn find(state: &State, Caller(owner): &Caller, id: &str) -> Result<HeldSandbox, Problem> {
    let found = state.sandboxes.hold(owner.name(), id);
    found.ok_or_else(|| Problem::no_sandbox(id))
}

fn conflict(code: &'static str, message: &str) -> Problem {
    Problem::new(StatusCode::CONFLICT, code, message)
}

/// Filter of the sandboxes that a client lists.
#[derive(Debug)]
struct SandboxFilter {
    page: usize,
    size: usize,
    states: Vec<String>,
    metadata: Vec<(String, String)>,
}

impl SandboxFilter {
    fn of(query: &str) -> Result<Self, Problem> {
        let mut wanted = Self {
            page: 1,
            size: PAGE,
            states: Vec::new(),
            metadata: Vec::new(),
        };
        for (name, value) in pairs(query) {
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
                "metadata" => wanted.metadata.extend(pairs(&value)),
                _ => {}
            }
        }
        Ok(wanted)
    }

    fn takes(&self, sandbox: &Sandbox) -> bool {
        let status = sandbox.status();
        let state = self.states.is_empty() || self.states.iter().any(|it| it.eq_ignore_ascii_case(status));
        let metadata = lock(&sandbox.metadata);
        state
            && self
                .metadata
                .iter()
                .all(|(name, value)| metadata.get(name) == Some(value))
    }
}
