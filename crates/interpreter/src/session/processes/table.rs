//! The list of a session's processes, which its handles and its task share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cellblock_sandbox::guest::{CommandEvent, GuestLink, RunningCommand};
use cellblock_settings::clock::millis_since_epoch;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::process::{ProcessOrder, ProcessReport, ProcessState, output_file};
use super::signal::{self, ProcessSignal};
use crate::base::HeldLayer;
use crate::checkpoint_error::CheckpointError;
use crate::error::Result;
use crate::process_error::{MAX_RUNNING, ProcessError};
use crate::session::runtime::environment::environment;

/// Maximum number of ended processes of a session whose output is kept; the oldest are dropped first.
pub const MAX_ENDED: usize = 64;
/// Maximum time for killed processes to be gone.
const END_LIMIT: Duration = Duration::from_secs(10);

/// The processes of a session.
#[derive(Debug)]
pub(in crate::session) struct Table(Mutex<Rows>, Notify);

#[derive(Debug)]
struct Rows {
    /// The way to the sandbox that is there.
    link: Option<GuestLink>,
    /// Layers of packages that processes find.
    layers: Vec<HeldLayer>,
    /// Variables that name the proxy of the session, if it has one.
    way_out: BTreeMap<String, String>,
    entries: BTreeMap<u64, Entry>,
    last: u64,
    used: Instant,
    /// Shared with each connection to a port.
    in_use: Arc<()>,
    /// Number of the cell of an undecided try, during which none starts.
    held: Option<u64>,
}

#[derive(Debug)]
struct Entry {
    command: Vec<String>,
    stdin: bool,
    terminal: bool,
    started: SystemTime,
    /// Number of its command in the sandbox; 0 until it has started.
    number: u64,
    link: GuestLink,
    state: watch::Sender<End>,
}

/// Progress of a process.
#[derive(Clone, Copy, Debug, Default)]
struct End {
    state: ProcessState,
    code: Option<i32>,
    signal: Option<i32>,
    ended: Option<SystemTime>,
}

/// A place in the list for a process that is being started. Dropping it frees the place.
#[derive(Debug)]
pub(super) struct Seat {
    table: Arc<Table>,
    key: Option<u64>,
}

impl Default for Table {
    fn default() -> Self {
        let rows = Rows {
            link: None,
            layers: Vec::new(),
            way_out: BTreeMap::new(),
            entries: BTreeMap::new(),
            last: 0,
            used: Instant::now(),
            in_use: Arc::default(),
            held: None,
        };
        Self(Mutex::new(rows), Notify::new())
    }
}

impl Table {
    /// Takes the way to the sandbox that is there, and what it has.
    pub(super) fn attach(&self, link: GuestLink, layers: &[HeldLayer], way_out: &BTreeMap<String, String>) {
        let mut rows = self.rows();
        rows.link = Some(link);
        rows.layers = layers.to_vec();
        rows.way_out.clone_from(way_out);
    }

    /// The sandbox is gone, and all processes with it.
    pub(in crate::session) fn lose(&self) {
        let mut rows = self.rows();
        (rows.link, rows.held) = (None, None);
        for entry in rows.entries.values() {
            end(&entry.state, End::lost());
        }
    }

    pub(in crate::session) fn is_empty(&self) -> bool {
        self.rows().entries.is_empty()
    }

    /// Returns the ID of a process that is running.
    pub(in crate::session) fn running(&self) -> Option<String> {
        let rows = self.rows();
        let mut entries = rows.entries.iter();
        let running = entries.find(|(_, entry)| entry.state.borrow().state == ProcessState::Running);
        running.map(|(key, _)| id(*key))
    }

    /// Lets no process start, and nobody see what the cell of a try starts, or returns the ID of a
    /// process that is running.
    pub(in crate::session) fn hold(&self, cell: u64) -> std::result::Result<(), String> {
        let mut rows = self.rows();
        let running = rows.entries.iter().find(|(_, entry)| entry.is_running());
        if let Some((key, _)) = running {
            return Err(id(*key));
        }
        rows.held = Some(cell);
        Ok(())
    }

    /// Ends that.
    pub(in crate::session) fn release(&self) {
        self.rows().held = None;
    }

    /// Completes when a process has ended since this last completed.
    pub(in crate::session) async fn ended(&self) {
        self.1.notified().await;
    }

    /// Returns how long nobody has used a process or a port.
    pub(in crate::session) fn idle(&self) -> Duration {
        let mut rows = self.rows();
        if Arc::strong_count(&rows.in_use) > 1 {
            rows.used = Instant::now();
        }
        rows.used.elapsed()
    }

    /// Returns whether a connection to a port or a process is open.
    pub(in crate::session) fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.rows().in_use) > 1
    }

    /// Notes that something is in use until what is returned is dropped.
    pub(in crate::session) fn in_use(&self) -> Arc<()> {
        Arc::clone(&self.rows().in_use)
    }

    /// Ends all processes and forgets them.
    pub(in crate::session) async fn end_all(&self) {
        let entries = std::mem::take(&mut self.rows().entries);
        for entry in entries.values() {
            // One that has ended cannot be signaled.
            let _ = entry
                .link
                .signal(entry.number, ProcessSignal::KILL.number())
                .await;
        }
        let ended = async {
            for entry in entries.values() {
                let mut state = entry.state.subscribe();
                let _ = state.wait_for(|end| end.state != ProcessState::Running).await;
            }
        };
        if tokio::time::timeout(END_LIMIT, ended).await.is_err() {
            tracing::warn!("processes of a session did not end in time");
        }
        for entry in entries.values() {
            let _ = entry.link.forget(entry.number).await;
        }
    }

    pub(super) fn touch(&self) {
        self.rows().used = Instant::now();
    }

    /// Returns the way to the sandbox, if there is one.
    pub(in crate::session) fn link(&self) -> Result<Option<GuestLink>> {
        let mut rows = self.rows();
        rows.check_free()?;
        rows.used = Instant::now();
        Ok(rows.link.clone().filter(|link| !link.is_gone()))
    }

    /// Returns the environment of a process.
    pub(super) fn environment(&self, asked: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let rows = self.rows();
        environment(&rows.layers, &rows.way_out, asked)
    }

    /// Finds a place for a process.
    pub(super) fn reserve(
        self: &Arc<Self>,
        order: &ProcessOrder,
        link: &GuestLink,
    ) -> Result<(String, Seat)> {
        let mut rows = self.rows();
        rows.check_free()?;
        if rows.entries.values().filter(|entry| entry.is_running()).count() >= MAX_RUNNING {
            return Err(ProcessError::TooMany.into());
        }
        rows.last += 1;
        let key = rows.last;
        let entry = Entry {
            command: order.command.clone(),
            stdin: order.stdin || order.terminal.is_some(),
            terminal: order.terminal.is_some(),
            started: SystemTime::now(),
            number: 0,
            link: link.clone(),
            state: watch::Sender::new(End::default()),
        };
        rows.entries.insert(key, entry);
        let seat = Seat {
            table: Arc::clone(self),
            key: Some(key),
        };
        Ok((id(key), seat))
    }

    /// Drops the processes that ended first, so that not too many are kept.
    pub(super) async fn forget_oldest(&self) {
        let dropped: Vec<_> = {
            let mut rows = self.rows();
            let entries = rows.entries.iter().filter(|(_, entry)| !entry.is_running());
            let mut ended: Vec<_> = entries
                .map(|(key, entry)| (entry.state.borrow().ended, *key))
                .collect();
            ended.sort_unstable();
            ended.truncate((ended.len() + 1).saturating_sub(MAX_ENDED));
            let keys = ended.into_iter().map(|(_, key)| key);
            keys.filter_map(|key| rows.entries.remove(&key)).collect()
        };
        for entry in dropped {
            let _ = entry.link.forget(entry.number).await;
        }
    }

    pub(super) fn list(&self) -> Vec<ProcessReport> {
        let rows = self.rows();
        let started = rows.entries.iter().filter(|(_, entry)| entry.number > 0);
        started.map(|(key, entry)| entry.report(*key)).collect()
    }

    pub(super) fn report(&self, id: &str) -> Result<ProcessReport> {
        let rows = self.rows();
        let (key, entry) = rows.find(id)?;
        Ok(entry.report(key))
    }

    /// Returns the way to a process, whose sandbox is there.
    pub(super) fn reach(&self, id: &str) -> Result<(GuestLink, u64)> {
        let mut rows = self.rows();
        rows.used = Instant::now();
        let (_, entry) = rows.find(id)?;
        if entry.state.borrow().state == ProcessState::Lost {
            return Err(ProcessError::Lost { id: id.to_owned() }.into());
        }
        Ok((entry.link.clone(), entry.number))
    }

    /// Waits for a process to end.
    pub(super) async fn wait(&self, id: &str, limit: Duration) -> Result<ProcessReport> {
        let mut state = {
            let mut rows = self.rows();
            rows.used = Instant::now();
            rows.find(id)?.1.state.subscribe()
        };
        let ended = state.wait_for(|end| end.state != ProcessState::Running);
        let _ = tokio::time::timeout(limit, ended).await;
        self.touch();
        self.report(id)
    }

    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.0.lock()
    }
}

impl Rows {
    fn check_free(&self) -> Result<()> {
        match self.held {
            Some(cell) => Err(CheckpointError::Undecided { cell }.into()),
            None => Ok(()),
        }
    }

    fn find(&self, id: &str) -> Result<(u64, &Entry)> {
        let key = id.strip_prefix('p').and_then(|key| key.parse().ok());
        let found = key.and_then(|key| Some((key, self.entries.get(&key)?)));
        Ok(found.ok_or_else(|| ProcessError::NotFound { id: id.to_owned() })?)
    }
}

impl Entry {
    fn is_running(&self) -> bool {
        self.state.borrow().state == ProcessState::Running
    }

    fn report(&self, key: u64) -> ProcessReport {
        let end = *self.state.borrow();
        let id = id(key);
        ProcessReport {
            output_file: output_file(&id),
            id,
            command: self.command.clone(),
            state: end.state,
            exit_code: end.code,
            signal: end.signal.map(signal::name),
            stdin: self.stdin,
            terminal: self.terminal,
            started_unix_ms: millis_since_epoch(self.started),
            ended_unix_ms: end.ended.map(millis_since_epoch),
        }
    }
}

impl Seat {
    /// The process has started; from here on it is listed, and its end is noted.
    pub(super) fn taken(mut self, mut running: RunningCommand) {
        let Some(key) = self.key.take() else { return };
        let mut rows = self.table.rows();
        let Some(entry) = rows.entries.get_mut(&key) else {
            return;
        };
        entry.number = running.number();
        let state = entry.state.clone();
        drop(rows);
        let table = Arc::clone(&self.table);
        tokio::spawn(async move {
            end(&state, End::of(running.events.recv().await.as_ref()));
            table.1.notify_one();
        });
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.table.rows().entries.remove(&key);
        }
    }
}

impl End {
    fn lost() -> Self {
        Self {
            state: ProcessState::Lost,
            ended: Some(SystemTime::now()),
            ..Self::default()
        }
    }

    fn of(event: Option<&CommandEvent>) -> Self {
        let Some(&CommandEvent::Exited { code, signal, .. }) = event else {
            return Self::lost();
        };
        Self {
            state: if code.is_some() {
                ProcessState::Exited
            } else {
                ProcessState::Killed
            },
            code,
            signal: signal.filter(|_| code.is_none()),
            ended: Some(SystemTime::now()),
        }
    }
}

/// Notes an end, unless one was noted before.
fn end(state: &watch::Sender<End>, new: End) {
    state.send_if_modified(|end| {
        let first = end.state == ProcessState::Running;
        if first {
            *end = new;
        }
        first
    });
}

fn id(key: u64) -> String {
    format!("p{key}")
}
