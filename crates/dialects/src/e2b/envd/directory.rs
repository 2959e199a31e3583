//! `filesystem.Filesystem`: directories, and changes in them.

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};

use super::super::error::Problem;
use super::super::paths::absolute;
use super::super::place::RequestSandbox;
use super::super::sandbox::HeldSandbox;
use super::super::state::E2b;
use super::connect::{self, Fault, RpcResult};
use super::entry::entry;
use super::watch;
use crate::bounded::BoundedName;
use crate::files::{FileRecord, RecordList, operate};

/// Depth of a list, unless a request says otherwise, and at most.
const DEPTH: u32 = 1;
const MAX_DEPTH: u32 = 64;
/// Maximum number of entries of a list.
const MAX_ENTRIES: u64 = 100_000;
/// Number of entries of one answer of the sandbox, which has a maximum size.
const PART: usize = 10_000;

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
    /// A sandbox has no such mounts, so there is nothing to allow.
    #[serde(rename = "allowNetworkMounts")]
    _network_mounts: bool,
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
    let record: FileRecord = match method {
        "Stat" => ask(held, "record.find", &json!({ "path": path })).await?,
        "MakeDir" => ask(held, "change.make", &json!({"path": path, "exist_ok": false})).await?,
        "Move" => {
            let (source, destination) = (absolute(&request.source), absolute(&request.destination));
            let paths = json!({"source": source, "destination": destination, "replace": true});
            ask(held, "change.move", &paths).await?
        }
        "Remove" => {
            let removed = json!({"path": path, "missing_ok": true});
            ask::<IgnoredAny>(held, "change.remove", &removed).await?;
            return Ok(json!({}));
        }
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
    Ok(json!({ "entry": entry(&record) }))
}

/// Performs an operation in the sandbox.
pub(super) async fn ask<T: DeserializeOwned>(
    held: &HeldSandbox,
    operation: &str,
    arguments: &Value,
) -> RpcResult<T> {
    let done = operate(&held.session, "/", operation, arguments).await;
    done.map_err(|fault| Problem::from(fault).into())
}

/// Lists a directory in parts.
async fn list(held: &HeldSandbox, path: &str, depth: u32) -> RpcResult<Value> {
    let depth = if depth == 0 { DEPTH } else { depth.min(MAX_DEPTH) };
    let mut all = Vec::new();
    for skip in (0..MAX_ENTRIES).step_by(PART) {
        let part = json!({"path": path, "depth": depth, "skip": skip, "limit": PART});
        let found: RecordList = ask(held, "record.entries", &part).await?;
        if found.total > MAX_ENTRIES {
            let message =
                format!("{path} has more than {MAX_ENTRIES} entries, which is the limit; list less deeply");
            return Err(Fault::new("resource_exhausted", message));
        }
        all.extend(found.entries.iter().map(entry));
        if skip + PART as u64 >= found.total {
            break;
        }
    }
    Ok(json!({ "entries": all }))
}
