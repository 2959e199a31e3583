//! Dependencies of a run on those before it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use tokio::task::JoinHandle;

use crate::run_record::RunDependency;
use crate::session::effects::{Effects, StateChange};
use crate::session::journal::recorder::{InputDigest, digest_of};

/// State from before the next run.
#[derive(Debug, Default)]
pub(in crate::session) struct RunChain {
    pub(super) now: ChainState,
    /// Time at which the code of the recorded run began, and the state from before it.
    pub(super) begun: Option<(Instant, ChainState)>,
    pub(super) inputs: BTreeMap<String, InputDigest>,
}

/// State with which a replay of the next run would begin.
#[derive(Clone, Debug, Default)]
pub(in crate::session) struct ChainState {
    /// Sandboxes that the session has lost.
    pub(super) lost: u64,
    pub(super) parent: Option<String>,
    pub(super) reset: bool,
    pub(super) depends_on: BTreeSet<RunDependency>,
}

impl RunChain {
    /// Notes what a request changes beside cells.
    pub(in crate::session) fn note(&mut self, effects: Effects) {
        match effects.change {
            Some(StateChange::Dependency(dependency)) => _ = self.now.depends_on.insert(dependency),
            Some(StateChange::Reset) => self.reset(),
            None => {}
        }
    }

    /// Notes that the variables are gone.
    pub(in crate::session) fn reset(&mut self) {
        self.now.reset = true;
    }

    /// Notes that the code of a cell begins to run.
    pub(in crate::session) fn begin(&mut self, at: Instant) {
        self.begun = Some((at, self.now.clone()));
    }

    /// Notes an input, whose hash may still be computed.
    pub(in crate::session) fn bound(
        &mut self,
        name: &str,
        digest: Option<JoinHandle<Option<(String, u64)>>>,
    ) {
        if let Some(digest) = digest {
            self.inputs.insert(name.to_owned(), digest_of(digest));
        }
    }

    /// Notes that the sandbox is gone with all that was in it.
    pub(in crate::session) fn lose(&mut self) {
        self.now = ChainState {
            lost: self.now.lost + 1,
            ..ChainState::default()
        };
    }

    /// Returns the state of it that a checkpoint keeps.
    pub(in crate::session) fn state(&self) -> ChainState {
        self.now.clone()
    }

    /// Continues from a checkpoint.
    pub(in crate::session) fn roll_back(&mut self, state: ChainState) {
        self.now = ChainState {
            lost: self.now.lost,
            ..state
        };
    }
}
