//! The requests that a program has not answered.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use cellblock_interpreter::connector::{ConnectorError, FetchAnswer};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;

/// Maximum number of unanswered requests, with those that were canceled.
const OPEN: usize = 1024;

pub(super) type FetchOutcome = Result<FetchAnswer, ConnectorError>;

/// The requests to a process.
#[derive(Debug)]
pub(super) struct Calls(Mutex<CallsState>);

#[derive(Debug)]
struct CallsState {
    last: u64,
    /// Those that are canceled have no caller. They are answered, too.
    open: BTreeMap<u64, OpenCall>,
    /// Time of the process's last answer.
    heard: Instant,
    /// Whether it has answered a call.
    useful: bool,
    ended: Option<(Instant, ConnectorError)>,
}

#[derive(Debug)]
struct OpenCall {
    since: Instant,
    caller: Option<oneshot::Sender<FetchOutcome>>,
}

impl Calls {
    pub(super) fn new() -> Self {
        Self(Mutex::new(CallsState {
            last: 0,
            open: BTreeMap::new(),
            heard: Instant::now(),
            useful: false,
            ended: None,
        }))
    }

    /// Opens a request.
    pub(super) fn open(&self) -> Result<(u64, oneshot::Receiver<FetchOutcome>), ConnectorError> {
        let mut state = self.state();
        if let Some((_, why)) = &state.ended {
            return Err(why.clone());
        }
        let (caller, answer) = oneshot::channel();
        state.last += 1;
        let id = state.last;
        let since = Instant::now();
        let caller = Some(caller);
        state.open.insert(id, OpenCall { since, caller });
        Ok((id, answer))
    }

    /// Returns whether a request is open.
    pub(super) fn is_open(&self, id: u64) -> bool {
        self.state().open.contains_key(&id)
    }

    /// Gives an answer to its caller, if it still waits.
    pub(super) fn answer(&self, id: u64, answer: FetchOutcome) {
        let mut state = self.state();
        state.heard = Instant::now();
        // The first request is for the functions.
        state.useful |= id > 1;
        let open = state.open.remove(&id);
        drop(state);
        if let Some(caller) = open.and_then(|open| open.caller) {
            // The caller may just have left.
            let _ = caller.send(answer);
        }
    }

    /// Forgets a request that was not sent.
    pub(super) fn forget(&self, id: u64) {
        self.state().open.remove(&id);
    }

    /// Forgets the caller of a request; returns whether the request is open.
    pub(super) fn cancel(&self, id: u64) -> bool {
        let mut state = self.state();
        let open = state.open.get_mut(&id);
        open.is_some_and(|open| open.caller.take().is_some())
    }

    /// Returns whether nothing was heard for so long although something was to be answered, or too
    /// much is unanswered.
    pub(super) fn is_stuck(&self, most: Duration) -> bool {
        let state = self.state();
        let oldest = state.open.values().next();
        let silent = oldest.is_some_and(|open| open.since.max(state.heard).elapsed() >= most);
        silent || state.open.len() >= OPEN
    }

    /// Fails all requests, now and from now on. The first reason counts.
    pub(super) fn end(&self, why: ConnectorError) {
        let mut state = self.state();
        let (_, why) = state.ended.get_or_insert_with(|| (Instant::now(), why)).clone();
        let open = std::mem::take(&mut state.open);
        drop(state);
        for caller in open.into_values().filter_map(|open| open.caller) {
            let _ = caller.send(Err(why.clone()));
        }
    }

    /// Returns when and why the process ended.
    pub(super) fn ended(&self) -> Option<(Instant, ConnectorError)> {
        self.state().ended.clone()
    }

    pub(super) fn was_useful(&self) -> bool {
        self.state().useful
    }

    fn state(&self) -> MutexGuard<'_, CallsState> {
        self.0.lock()
    }
}
