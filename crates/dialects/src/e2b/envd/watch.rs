//! Changes in directories. The sandbox compares a directory with its last known state, which it has in
//! a file.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use cellblock_interpreter::mint;
use parking_lot::Mutex;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::super::paths::absolute;
use super::super::sandbox::HeldSandbox;
use super::super::state::E2b;
use super::connect::{self, Fault, RpcResult};
use super::directory::{Request, ask};
use super::entry::Change;

/// Time without changes after which a message is sent all the same.
const BEAT: Duration = Duration::from_secs(30);
/// Maximum number of watchers of a sandbox.
const MOST: usize = 64;

/// The watchers of a sandbox.
#[derive(Debug)]
pub(super) struct Watchers {
    /// Those that clients ask for changes, by their ids. The others send them.
    polled: Mutex<HashMap<String, Watcher>>,
    /// Places for more.
    seats: Arc<Semaphore>,
}

#[derive(Clone, Debug)]
struct Watcher {
    id: String,
    path: String,
    recursive: bool,
    include_entry: bool,
    _seat: Arc<OwnedSemaphorePermit>,
}

impl Default for Watchers {
    fn default() -> Self {
        Self {
            polled: Mutex::default(),
            seats: Arc::new(Semaphore::new(MOST)),
        }
    }
}

impl Watchers {
    /// Takes a place for one more watcher.
    fn seat(&self) -> RpcResult<Arc<OwnedSemaphorePermit>> {
        let seat = Arc::clone(&self.seats).try_acquire_owned();
        seat.map(Arc::new).map_err(|_| {
            let message = format!("the sandbox has {MOST} watchers, which is the limit; remove one of them");
            Fault::new("resource_exhausted", message)
        })
    }
}

impl Watcher {
    async fn start(held: &HeldSandbox, path: &str, request: &Request) -> RpcResult<Self> {
        let seat = held.kept.daemon.watchers.seat()?;
        let watcher = Self {
            id: mint("w"),
            path: path.to_owned(),
            recursive: request.recursive,
            include_entry: request.include_entry,
            _seat: seat,
        };
        let _: IgnoredAny = ask(held, "watch.start", &watcher.arguments()).await?;
        Ok(watcher)
    }

    fn arguments(&self) -> Value {
        json!({"file": self.file(), "path": self.path, "recursive": self.recursive})
    }

    /// Path of the file with the directory's state; its name is one of the host's.
    fn file(&self) -> String {
        format!("/tmp/.cellblock-watch/{}", self.id)
    }

    /// Returns the changes since the last call, or the first ones within a time.
    async fn changes(&self, held: &HeldSandbox, within: Duration) -> RpcResult<Vec<Value>> {
        let mut arguments = self.arguments();
        arguments["seconds"] = within.as_secs().into();
        let changes: Vec<Change> = ask(held, "watch.changes", &arguments).await?;
        Ok(changes.iter().map(|it| it.describe(self.include_entry)).collect())
    }

    /// Removes the file, which also ends a call that waits for changes.
    async fn stop(&self, held: &HeldSandbox) {
        let file = json!({"path": self.file(), "missing_ok": true});
        // A sandbox that has ended watches nothing.
        let _ = ask::<IgnoredAny>(held, "change.remove", &file).await;
    }
}

pub(super) async fn create(held: &HeldSandbox, path: &str, request: &Request) -> RpcResult<Value> {
    let watcher = Watcher::start(held, path, request).await?;
    let id = watcher.id.clone();
    let watchers = &held.kept.daemon.watchers;
    watchers.polled.lock().insert(id.clone(), watcher);
    Ok(json!({ "watcherId": id }))
}

pub(super) async fn events(held: &HeldSandbox, id: &str) -> RpcResult<Value> {
    let found = held.kept.daemon.watchers.polled.lock().get(id).cloned();
    let watcher = found.ok_or_else(|| Fault::not_found(format!("watcher {id:?} not found")))?;
    Ok(json!({ "events": watcher.changes(held, Duration::ZERO).await? }))
}

pub(super) async fn remove(held: &HeldSandbox, id: &str) -> RpcResult<Value> {
    let found = held.kept.daemon.watchers.polled.lock().remove(id);
    let watcher = found.ok_or_else(|| Fault::not_found(format!("watcher {id:?} not found")))?;
    watcher.stop(held).await;
    Ok(json!({}))
}

/// Sends changes as they come, until the client goes.
pub(super) async fn stream(e2b: &E2b, held: HeldSandbox, request: Request) -> RpcResult<Response> {
    let watcher = Watcher::start(&held, &absolute(&request.path), &request).await?;
    let (messages, waiting) = mpsc::channel(16);
    let watching = e2b.host.tasks.spawn(async move {
        let _ = messages.send(json!({ "start": {} })).await;
        let ended = tokio::select! {
            ended = follow(&watcher, &held, &messages) => ended,
            () = messages.closed() => Ok(()),
            () = held.closed() => Err(Fault::new("unavailable", "the sandbox has ended")),
        };
        watcher.stop(&held).await;
        ended
    });
    Ok(connect::stream(waiting, async move {
        watching.await.unwrap_or(Ok(()))
    }))
}

async fn follow(watcher: &Watcher, held: &HeldSandbox, messages: &mpsc::Sender<Value>) -> RpcResult<()> {
    loop {
        let changes = watcher.changes(held, BEAT).await?.into_iter();
        let mut news: Vec<_> = changes.map(|it| json!({ "filesystem": it })).collect();
        if news.is_empty() {
            news.push(json!({ "keepalive": {} }));
        }
        for message in news {
            if messages.send(message).await.is_err() {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sandbox_has_places_for_a_limited_number_of_watchers() {
        let watchers = Watchers::default();
        let mut seats: Vec<_> = (0..MOST).map(|_| watchers.seat().unwrap()).collect();
        assert!(watchers.seat().is_err());
        seats.pop();
        watchers.seat().unwrap();
    }
}
