//! Changes in directories. The sandbox compares a directory with what it was, each time it is asked.

use std::collections::HashMap;
use std::time::Duration;

use axum::response::Response;
use cellblock_interpreter::mint;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::super::paths::absolute;
use super::super::sandbox::HeldSandbox;
use super::super::state::E2b;
use super::connect::{self, Fault, RpcResult};
use super::directory::Request;
use super::entry::{self, Change};

/// Pause between looks at a directory.
const LOOK: Duration = Duration::from_millis(100);
/// Silence after which a message is sent all the same.
const BEAT: Duration = Duration::from_secs(30);
/// Maximum number of watchers of a sandbox that clients ask for changes.
const MOST: usize = 64;

/// Watchers that clients ask for changes, by their ids.
#[derive(Debug, Default)]
pub(super) struct Watchers(Mutex<HashMap<String, Watcher>>);

#[derive(Clone, Debug)]
struct Watcher {
    /// Its id in the sandbox.
    id: String,
    path: String,
    include_entry: bool,
}

impl Watchers {
    fn map<T>(&self, use_it: impl FnOnce(&mut HashMap<String, Watcher>) -> T) -> T {
        use_it(&mut self.0.lock())
    }
}

impl Watcher {
    async fn start(held: &HeldSandbox, path: &str, request: &Request) -> RpcResult<Self> {
        let question = json!({"op": "watch", "path": path, "recursive": request.recursive});
        let told = held.kept.daemon.surveyor.ask(held, &question).await;
        let mut said = told.map_err(|fault| fault.about(path))?;
        Ok(Self {
            id: entry::read(&mut said, "id")?,
            path: path.to_owned(),
            include_entry: request.include_entry,
        })
    }

    async fn changes(&self, held: &HeldSandbox) -> RpcResult<Vec<Change>> {
        let surveyor = &held.kept.daemon.surveyor;
        let mut said = surveyor
            .ask(held, &json!({"op": "changes", "id": self.id}))
            .await?;
        let mut changes: Vec<Change> = entry::read(&mut said, "events")?;
        if self.include_entry {
            for change in changes.iter_mut().filter(|it| it.is_there()) {
                let path = format!("{}/{}", self.path, change.name);
                if let Ok(mut said) = surveyor.ask(held, &json!({"op": "stat", "path": path})).await {
                    change.entry = entry::read(&mut said, "entry").ok();
                }
            }
        }
        Ok(changes)
    }

    async fn stop(&self, held: &HeldSandbox) {
        let question = json!({"op": "unwatch", "id": self.id});
        let stopped = held.kept.daemon.surveyor.ask(held, &question);
        // One that has ended watches nothing.
        let _ = stopped.await;
    }
}

pub(super) async fn create(held: &HeldSandbox, path: &str, request: &Request) -> RpcResult<Value> {
    let watchers = &held.kept.daemon.watchers;
    if watchers.map(|all| all.len()) >= MOST {
        let message = format!("the sandbox has {MOST} watchers, which is the limit; remove one of them");
        return Err(Fault::new("resource_exhausted", message));
    }
    let watcher = Watcher::start(held, path, request).await?;
    let id = mint("w");
    watchers.map(|all| all.insert(id.clone(), watcher));
    Ok(json!({ "watcherId": id }))
}

pub(super) async fn events(held: &HeldSandbox, id: &str) -> RpcResult<Value> {
    let found = held.kept.daemon.watchers.map(|all| all.get(id).cloned());
    let watcher = found.ok_or_else(|| Fault::not_found(format!("watcher {id:?} not found")))?;
    Ok(json!({ "events": watcher.changes(held).await? }))
}

pub(super) async fn remove(held: &HeldSandbox, id: &str) -> RpcResult<Value> {
    let found = held.kept.daemon.watchers.map(|all| all.remove(id));
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
    let mut said = Instant::now();
    loop {
        let changes = watcher.changes(held).await?;
        for change in changes {
            said = Instant::now();
            if messages.send(json!({ "filesystem": change })).await.is_err() {
                return Ok(());
            }
        }
        if said.elapsed() > BEAT {
            said = Instant::now();
            if messages.send(json!({ "keepalive": {} })).await.is_err() {
                return Ok(());
            }
        }
        sleep(LOOK).await;
    }
}
