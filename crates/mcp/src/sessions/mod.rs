//! Sessions by their handles: each belongs to the owner who made it, and expires.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cellblock_interpreter::Interpreter;
use cellblock_interpreter::alias::{AliasStore, Bounds};
use cellblock_interpreter::derivation::Policy;
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::workbench::{DatasetSource, Workbench, WorkbenchOptions};
use futures_util::future::join_all;
use tokio::sync::Mutex as AsyncMutex;

use crate::options::{Options, Toolset};
use crate::owner::Owner;
use crate::refusal::Refusal;

mod entry;
mod handle;
mod made;

pub(crate) use entry::{Entry, Use};
pub(crate) use handle::mint;
pub(crate) use made::Made;

/// How often expired sessions are looked for.
const SWEEP: Duration = Duration::from_secs(5);
/// Handles that a refusal lists.
const LISTED: usize = 20;

/// All sessions of a server.
#[derive(Debug)]
pub(crate) struct Sessions {
    entries: Mutex<HashMap<String, Arc<Entry>>>,
    /// Whether the last one was made.
    closed: AtomicBool,
    options: Options,
}

impl Sessions {
    /// None yet. Those that expire are closed by a task that ends with the last handle of this.
    pub(crate) fn new(options: &Options) -> Arc<Self> {
        let sessions = Arc::new(Self {
            entries: Mutex::default(),
            closed: AtomicBool::new(false),
            options: options.clone(),
        });
        let swept = Arc::downgrade(&sessions);
        let period = SWEEP.min(options.idle / 2).max(Duration::from_millis(10));
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(period).await;
                let Some(sessions) = swept.upgrade() else { return };
                sessions.sweep().await;
            }
        });
        sessions
    }

    /// An owner's session.
    pub(crate) fn find(&self, owner: &Owner, handle: &str) -> Result<Use, Refusal> {
        let entries = self.entries();
        match entries.get(handle) {
            Some(entry) if entry.owner == *owner => Ok(Use::of(Arc::clone(entry))),
            _ => {
                let named: String = handle.chars().take(80).collect();
                Err(Refusal::new(format!(
                    "there is no session {named:?}: it has expired, was closed, or never was. {}",
                    known(&entries, owner)
                )))
            }
        }
    }

    /// A new session. Its sandbox is made by the first call that needs it.
    pub(crate) async fn create(&self, interpreter: &Interpreter, owner: &Owner) -> Result<Use, Refusal> {
        self.room(&self.entries(), owner)?;
        let permit = self.options.meter.session(owner).await?;
        let handle = mint("sess_");
        let options = SessionOptions {
            idle: self.options.idle,
            ..SessionOptions::default()
        };
        let derivation = if self.options.toolsets.contains(&Toolset::Derivation) {
            let aliases = AliasStore::new(interpreter.store().clone(), handle.clone(), Bounds::default());
            let policy = Policy {
                idle: self.options.idle,
                cell_time: self.options.cell_time,
                ..Policy::default()
            };
            Some(interpreter.derivation(aliases, policy).await?)
        } else {
            None
        };
        let session = match &derivation {
            Some(derivation) => derivation.session().clone(),
            None => interpreter.session(options),
        };
        let workbench = Workbench::new(session.clone(), WorkbenchOptions::default());
        let mut datasets = Vec::new();
        for dataset in &self.options.datasets {
            let source = DatasetSource::File(dataset.path.clone());
            datasets.push(workbench.add_dataset(&dataset.name, source).await.map_err(|error| {
                tracing::error!(
                    name = dataset.name,
                    error = &error as &dyn std::error::Error,
                    "could not show a dataset"
                );
                Refusal::new(format!(
                    "the dataset `{}`, which this server's operator offers, cannot be read: tell the user",
                    dataset.name
                ))
            })?);
        }
        let aliases = derivation.as_ref().map(|it| it.aliases().clone());
        let entry = Arc::new(Entry {
            handle: handle.clone(),
            owner: owner.clone(),
            session,
            workbench,
            derivation: derivation.map(AsyncMutex::new),
            renewed: AtomicBool::default(),
            aliases,
            datasets,
            _permit: permit,
            turn: Arc::default(),
            made: Mutex::default(),
            use_: Mutex::default(),
        });
        let used = Use::of(Arc::clone(&entry));
        let mut entries = self.entries();
        // Others may have been made meanwhile.
        self.room(&entries, owner)?;
        entries.insert(handle, entry);
        Ok(used)
    }

    /// An owner's sessions, oldest first.
    pub(crate) fn of(&self, owner: &Owner) -> Vec<Arc<Entry>> {
        sorted(&self.entries(), owner)
    }

    /// Ends an owner's session, and completes when its sandbox is gone.
    pub(crate) async fn close(&self, used: &Use) -> Result<(), Refusal> {
        self.entries().remove(&used.handle);
        used.close().await
    }

    /// Ends all, and completes when their sandboxes are gone. No others are made.
    pub(crate) async fn close_all(&self) {
        let all: Vec<_> = {
            let mut entries = self.entries();
            self.closed.store(true, Ordering::Relaxed);
            entries.drain().map(|(_, entry)| entry).collect()
        };
        end(all).await;
    }

    async fn sweep(&self) {
        let mut expired = Vec::new();
        self.entries().retain(|_, entry| {
            let keep = !entry.is_idle_for(self.options.idle);
            if !keep {
                expired.push(Arc::clone(entry));
            }
            keep
        });
        end(expired).await;
    }

    fn room(&self, entries: &HashMap<String, Arc<Entry>>, owner: &Owner) -> Result<(), Refusal> {
        if self.closed.load(Ordering::Relaxed) {
            return Err(Refusal::new("no session is made any more"));
        }
        let own = entries.values().filter(|entry| entry.owner == *owner).count();
        if own >= self.options.sessions_per_owner {
            return Err(Refusal::new(format!(
                "there are {own} sessions, and no more than {} are allowed: go on in one of them by its handle, or close one. {}",
                self.options.sessions_per_owner,
                known(entries, owner)
            )));
        }
        if entries.len() >= self.options.sessions {
            return Err(Refusal::new(
                "this server has as many sessions as it may have: try again in a while, or go on in one of yours",
            ));
        }
        Ok(())
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<String, Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn end(entries: Vec<Arc<Entry>>) {
    let ended = join_all(entries.iter().map(|entry| entry.close())).await;
    for refusal in ended.into_iter().filter_map(Result::err) {
        tracing::warn!(reason = refusal.message, "could not end a session in order");
    }
}

fn sorted(entries: &HashMap<String, Arc<Entry>>, owner: &Owner) -> Vec<Arc<Entry>> {
    let own = entries.values().filter(|entry| entry.owner == *owner);
    let mut own: Vec<_> = own.cloned().collect();
    own.sort_by_key(|entry| (entry.created(), entry.handle.clone()));
    own
}

/// What a model can go on with.
fn known(entries: &HashMap<String, Arc<Entry>>, owner: &Owner) -> String {
    let own = sorted(entries, owner);
    if own.is_empty() {
        return "There are no sessions: leave `session` out of `run_python`, or call `create_session`, to begin one".to_owned();
    }
    let handles: Vec<_> = own
        .iter()
        .rev()
        .take(LISTED)
        .map(|it| it.handle.as_str())
        .collect();
    format!("Sessions, latest first: {}", handles.join(", "))
}
