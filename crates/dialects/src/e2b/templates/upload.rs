//! Uploads of the files that steps copy: a client requests an address for them, which opens with a token
//! instead of a key.

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::{CONTENT_ENCODING, HOST};
use axum::http::request::Parts;
use axum::http::uri::Scheme;
use axum::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::super::error::{Answer, Problem};
use super::super::place::Caller;
use super::super::state::E2b;
use super::builds::UPLOAD;
use crate::bounded::MAX_NAME;
use crate::presented::{FORWARDED_HOST, header, path};

/// Path of uploads, below that of the dialect.
const PATH: &str = "/templates/uploads/";

/// Returns the address to which a client uploads files.
pub(super) async fn link(
    State(e2b): State<E2b>,
    Caller(owner): Caller,
    Path((name, hash)): Path<(String, String)>,
    parts: Parts,
) -> Answer<(StatusCode, Json<Value>)> {
    if hash.len() > MAX_NAME {
        return Err(Problem::invalid(format!(
            "the hash has {} bytes, the limit is {MAX_NAME}",
            hash.len()
        )));
    }
    let build = e2b.builds.waiting(&owner, &name).ok_or_else(|| {
        Problem::not_found(format!(
            "template '{name}' has no build that waits for files; request one with `POST /v3/templates`"
        ))
    })?;
    let token = build.request_upload(&hash, e2b.host.mint(UPLOAD))?;
    let answer = match token {
        None => json!({ "present": true }),
        Some(token) => json!({"present": false, "url": format!("{}{PATH}{token}", base(&e2b, &parts))}),
    };
    Ok((StatusCode::CREATED, Json(answer)))
}

/// Receives files. They count as an upload of the key that requested the address.
pub(super) async fn receive(
    State(e2b): State<E2b>,
    Path(token): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Answer<StatusCode> {
    let found = e2b.builds.upload(&token);
    let (build, hash) =
        found.ok_or_else(|| Problem::not_found("the address of the upload is not valid, or not any more"))?;
    e2b.host.enter(build.owner.name()).await?;
    if header(&headers, CONTENT_ENCODING.as_str()).is_some_and(|it| !it.is_empty() && it != "identity") {
        return Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "uploads have no content encoding; send the archive as it is",
        ));
    }
    let mut receiving = e2b.host.begin_upload(&build.owner, &headers).await?;
    let received = receiving.receive(body.into_data_stream()).await?;
    build.put(&hash, received)?;
    Ok(StatusCode::OK)
}

/// Returns the address of the dialect as the client of a request knows it.
fn base(e2b: &E2b, parts: &Parts) -> String {
    let host = header(&parts.headers, FORWARDED_HOST).or_else(|| header(&parts.headers, HOST.as_str()));
    let host = host.unwrap_or("localhost");
    let name = host.split(':').next().unwrap_or_default();
    let is_of_domain = e2b
        .domain
        .as_ref()
        .is_some_and(|domain| domain.label(name) == Some("api") && domain.is_encrypted(e2b.options.tls));
    // The connection's own, which the server notes.
    let is_encrypted = parts
        .extensions
        .get::<Scheme>()
        .is_some_and(|it| it.as_str() == "https");
    let proxied = header(&parts.headers, "x-forwarded-proto").map(|it| it == "https");
    let is_https = is_encrypted || proxied.unwrap_or(is_of_domain);
    let scheme = if is_https { "https" } else { "http" };
    let path = path(parts);
    let before = path.find("/templates/").and_then(|end| path.get(..end));
    format!("{scheme}://{host}{}", before.unwrap_or_default())
}

/// Returns the mark of the server that the token of an upload names.
pub(in super::super) fn server_of(parts: &Parts) -> Option<String> {
    let (_, token) = path(parts).split_once(PATH)?;
    Some(token.strip_prefix(UPLOAD)?.to_owned())
}
