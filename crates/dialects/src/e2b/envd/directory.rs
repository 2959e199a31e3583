//! `filesystem.Filesystem`: directories, and changes in them.

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::error::Problem;
use super::super::paths::absolute;
use super::super::place::RequestSandbox;
use super::super::sandbox::HeldSandbox;
use super::super::state::E2b;
use super::connect::{self, Fault, RpcResult};
use super::entry::{self, EnvdEntry};
use super::watch;
use crate::bounded::BoundedName;

/// Depth of a list, unless a request says otherwise, and at most.
const DEPTH: u32 = 1;
const MAX_DEPTH: u32 = 64;
/// Maximum number of entries of a list.
const MAX_ENTRIES: usize = 100_000;

/// A request of any method; each uses its own fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Request {
    pub(super) path: BoundedName,
    source: BoundedName,
    destination: BoundedName,
    depth: u32,
    pub(super) recursive: bool,
    pub(super) include_entry: bool,
    pub(super) watcher_id: String,
    allow_network_mounts: bool,
}

pub(super) async fn call(
    State(e2b): State<E2b>,
    Path(method): Path<String>,
    headers: HeaderMap,
    inside: RequestSandbox,
    body: Bytes,
) -> Response {
    if let Some(refused) = connect::wrong_codec(&headers) {
        return refused;
    }
    let RequestSandbox(held) = inside;
    let request: Request = match connect::message(&headers, &body) {
        Ok(request) => request,
        Err(fault) => return connect::answer(&headers, Err(fault)),
    };
    if request.allow_network_mounts {
        let why = "a sandbox has no network mounts; leave it out";
        let refused = Problem::unenforced("allowNetworkMounts", &true, why);
        return connect::answer(&headers, Err(refused.into()));
    }
    if method == "WatchDir" {
        return match watch::stream(&e2b, held, request).await {
            Ok(response) => response,
            Err(fault) => connect::answer(&headers, Err(fault)),
        };
    }
    let done = perform(&held, &method, request).await;
    connect::answer(&headers, done).into_response()
}

async fn perform(held: &HeldSandbox, method: &str, request: Request) -> RpcResult<Value> {
    let path = absolute(&request.path);
    let surveyor = &held.kept.daemon.surveyor;
    let question = match method {
        "Stat" => json!({"op": "stat", "path": path}),
        "MakeDir" => json!({"op": "make", "path": path}),
        "Remove" => json!({"op": "remove", "path": path}),
        "Move" => json!({
            "op": "move", "source": absolute(&request.source), "destination": absolute(&request.destination)
        }),
        "ListDir" => return list(held, &path, request.depth).await,
        "CreateWatcher" => return watch::create(held, &path, &request).await,
        "GetWatcherEvents" => return watch::events(held, &request.watcher_id).await,
        "RemoveWatcher" => return watch::remove(held, &request.watcher_id).await,
        _ => {
            return Err(Fault::new(
                "unimplemented",
                format!("`{method}` is not served by Cellblock"),
            ));
        }
    };
    let told = surveyor.ask(held, &question).await;
    let mut said = told.map_err(|fault| fault.about(&path))?;
    if method == "Remove" {
        return Ok(json!({}));
    }
    let entry: EnvdEntry = entry::read(&mut said, "entry")?;
    Ok(json!({ "entry": entry }))
}

/// Lists a directory in parts, each of which is a question.
async fn list(held: &HeldSandbox, path: &str, depth: u32) -> RpcResult<Value> {
    let depth = if depth == 0 { DEPTH } else { depth.min(MAX_DEPTH) };
    let mut all: Vec<EnvdEntry> = Vec::new();
    let mut skip = 0_u64;
    loop {
        let question = json!({"op": "list", "path": path, "depth": depth, "skip": skip});
        let told = held.kept.daemon.surveyor.ask(held, &question).await;
        let mut said = told.map_err(|fault| fault.about(path))?;
        all.extend(entry::read::<Vec<EnvdEntry>>(&mut said, "entries")?);
        let next = said["next"].as_u64().unwrap_or(0);
        if next <= skip {
            return Ok(json!({ "entries": all }));
        }
        if all.len() > MAX_ENTRIES {
            let message =
                format!("{path} has more than {MAX_ENTRIES} entries, which is the limit; list less deeply");
            return Err(Fault::new("resource_exhausted", message));
        }
        skip = next;
    }
}
