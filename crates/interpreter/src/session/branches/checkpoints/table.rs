//! The checkpoints that a session has.

use std::collections::BTreeMap;
use std::sync::Arc;

use cellblock_protocol::CellNames;
use cellblock_sandbox::backend::{KeptKernel, Kernel};

use super::checkpoint::Checkpoint;
use crate::base::HeldLayer;
use crate::checkpoint_error::{CheckpointError, MAX_NAME};
use crate::connector::{WriteMode, WriteRecorder};
use crate::lineage::{self, Ledger};
use crate::session::contents::collection::CollectionState;
use crate::session::journal::chain::ChainState;
use crate::session::runtime::standby::Standby;

/// Number of the files' snapshot of the state before a try. Those of checkpoints begin at 1.
pub(super) const OF_TRY: u64 = 0;

/// The checkpoints, with the kernels' output that they share.
///
/// A kept copy writes to the same pipes as the kernel that it was made from. A kernel that was
/// started anew has other pipes; the former ones are set aside for the copies.
#[derive(Debug, Default)]
pub(in crate::session) struct Checkpoints {
    kept: Vec<CheckpointEntry>,
    /// Number of the last checkpoint.
    last: u64,
    /// Id of the one that the current state comes from.
    pub(in crate::session) parent: Option<String>,
    /// Number of the last kernel that was started anew.
    started: u64,
    /// Number of the one whose pipes the current kernel has.
    output: u64,
    /// Ended kernels, for their pipes, by their number.
    aside: BTreeMap<u64, Kernel>,
}

/// A checkpoint with what it is made of.
#[derive(Debug)]
pub(super) struct CheckpointEntry {
    pub(super) about: Checkpoint,
    /// Number of the checkpoint and of the files' snapshot.
    pub(super) number: u64,
    pub(super) kernel: KeptKernel,
    pub(super) state: State,
    output: u64,
}

/// The host's part of a session's state.
#[derive(Clone, Debug)]
pub(in crate::session) struct State {
    pub(in crate::session) standby: Standby,
    pub(in crate::session) lineage: Ledger,
    pub(in crate::session) collected: CollectionState,
    pub(in crate::session) layers: Vec<HeldLayer>,
    pub(in crate::session) chain: ChainState,
    /// Names of the inputs.
    pub(in crate::session) inputs: Vec<String>,
}

/// A try that runs or is undecided.
#[derive(Debug)]
pub(in crate::session) struct Trial {
    pub(super) cell: u64,
    /// Effects of its cell on variables.
    pub(super) names: Option<CellNames>,
    /// Lists the calls that change something, if the try is a rehearsal.
    pub(super) recorder: Option<Arc<WriteRecorder>>,
}

impl Trial {
    /// Returns the treatment of the calls of its cell that change something.
    pub(super) fn writes(&self) -> WriteMode {
        match &self.recorder {
            Some(recorder) => WriteMode::Rehearsing(Arc::clone(recorder)),
            None => WriteMode::Trying,
        }
    }

    /// Notes what its cell did to variables, as the kernel says.
    pub(in crate::session) fn note(&mut self, mut names: CellNames) {
        lineage::clean(&mut names);
        self.names = Some(names);
    }
}

impl Checkpoints {
    pub(in crate::session) fn list(&self) -> Vec<Checkpoint> {
        self.named().map(|kept| kept.about.clone()).collect()
    }

    /// Returns the numbers of the checkpoints, which are those of their snapshots.
    pub(in crate::session) fn numbers(&self) -> Vec<u64> {
        self.kept.iter().map(|kept| kept.number).collect()
    }

    /// Returns the pids of the copies in the sandbox.
    pub(in crate::session) async fn pids(&mut self) -> Vec<u32> {
        let mut pids = Vec::new();
        for kept in &mut self.kept {
            pids.extend(kept.kernel.pid().await);
        }
        pids
    }

    /// Returns these pids with that of the kernel.
    pub(in crate::session) async fn with(&mut self, kernel: Option<&Kernel>) -> Vec<u32> {
        let mut pids = self.pids().await;
        pids.extend(kernel.map(|kernel| kernel.pid));
        pids
    }

    /// Notes that a kernel was started anew.
    pub(in crate::session) fn begin(&mut self) {
        self.started += 1;
        self.output = self.started;
        self.parent = None;
    }

    /// Keeps the pipes of an ended kernel, if a checkpoint needs them.
    pub(in crate::session) fn set_aside(&mut self, ended: Option<Kernel>) {
        if let Some(ended) = ended
            && self.kept.iter().any(|kept| kept.output == self.output)
        {
            self.aside.insert(self.output, ended);
        }
    }

    /// Drops the checkpoints whose copies write to pipes that are gone.
    pub(in crate::session) fn lose_output(&mut self) {
        self.kept.retain(|kept| kept.output != self.output);
    }

    /// Drops all with their sandbox; returns a note if there were any.
    pub(in crate::session) fn lose(&mut self) -> Option<String> {
        let count = self.named().count();
        self.kept.clear();
        self.aside.clear();
        self.parent = None;
        let noun = if count == 1 {
            "checkpoint is"
        } else {
            "checkpoints are"
        };
        (count > 0).then(|| format!("{count} {noun} gone, too"))
    }

    /// Checks the name of a new checkpoint.
    pub(super) fn check(&self, name: &str) -> Result<(), CheckpointError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let length = name.chars().count();
        if length == 0 || length > MAX_NAME || !name.chars().all(allowed) || is_id(name) {
            let name = name.chars().take(MAX_NAME).collect();
            return Err(CheckpointError::InvalidName { name });
        }
        if self
            .kept
            .iter()
            .any(|kept| kept.about.name.as_deref() == Some(name))
        {
            let name = name.to_owned();
            return Err(CheckpointError::NameTaken { name });
        }
        Ok(())
    }

    /// Returns the number of the next checkpoint.
    pub(super) fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Adds a checkpoint, which the current state comes from now.
    pub(super) fn add(&mut self, about: Checkpoint, number: u64, kernel: KeptKernel, state: State) {
        if number != OF_TRY {
            self.parent = Some(about.id.clone());
        }
        self.kept.push(CheckpointEntry {
            about,
            number,
            kernel,
            state,
            output: self.output,
        });
    }

    /// Takes out the oldest if there are more than `most`.
    pub(super) fn evict(&mut self, most: usize) -> Option<CheckpointEntry> {
        (self.named().count() > most).then(|| self.take(0))
    }

    /// Returns the place of a checkpoint, given by its id or name.
    pub(super) fn find(&self, wanted: &str) -> Result<usize, CheckpointError> {
        let is_it =
            |kept: &CheckpointEntry| kept.about.id == wanted || kept.about.name.as_deref() == Some(wanted);
        let found = self
            .kept
            .iter()
            .position(|kept| kept.number != OF_TRY && is_it(kept));
        found.ok_or_else(|| {
            let named = |kept: &CheckpointEntry| match &kept.about.name {
                Some(name) => format!("`{}` ({name})", kept.about.id),
                None => format!("`{}`", kept.about.id),
            };
            let all: Vec<_> = self.named().map(named).collect();
            CheckpointError::NotFound {
                id: wanted.chars().take(MAX_NAME).collect(),
                kept: if all.is_empty() {
                    "none".to_owned()
                } else {
                    all.join(", ")
                },
            }
        })
    }

    /// Returns the place of the state before a try.
    pub(super) fn of_try(&self) -> Option<usize> {
        self.kept.iter().position(|kept| kept.number == OF_TRY)
    }

    /// Returns the place of what was kept or gone back to last, if it has the state from before the
    /// last message.
    pub(in crate::session) fn of_before(&self, standby: &Standby) -> Option<usize> {
        let last =
            |kept: &CheckpointEntry| kept.number == OF_TRY || Some(&kept.about.id) == self.parent.as_ref();
        self.kept.iter().rposition(|kept| {
            last(kept) && kept.output == self.output && standby.is_before(&kept.state.standby)
        })
    }

    fn named(&self) -> impl Iterator<Item = &CheckpointEntry> {
        self.kept.iter().filter(|kept| kept.number != OF_TRY)
    }

    pub(super) fn get(&self, place: usize) -> &CheckpointEntry {
        &self.kept[place]
    }

    pub(in crate::session) fn kernel(&mut self, place: usize) -> &mut KeptKernel {
        &mut self.kept[place].kernel
    }

    pub(super) fn take(&mut self, place: usize) -> CheckpointEntry {
        let kept = self.kept.remove(place);
        let needed = |output: u64| self.kept.iter().any(|kept| kept.output == output);
        self.aside.retain(|output, _| needed(*output));
        kept
    }

    /// Returns an ended kernel that has the pipes of a checkpoint, and notes that the current state
    /// comes from it.
    pub(super) fn switch(&mut self, place: usize, ended: Option<Kernel>) -> Option<Kernel> {
        self.set_aside(ended);
        let kept = &self.kept[place];
        self.output = kept.output;
        self.parent = if kept.number == OF_TRY {
            kept.about.parent.clone()
        } else {
            Some(kept.about.id.clone())
        };
        self.aside.remove(&self.output)
    }
}

fn is_id(name: &str) -> bool {
    name.strip_prefix('c')
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_plain_and_not_like_an_id() {
        let table = Checkpoints::default();
        for name in ["before", "v1.2_a-b", "c", "cc1", "c1x", "1"] {
            assert!(table.check(name).is_ok(), "{name}");
        }
        for name in ["", "c1", "c42", "a b", "ä", "a/b", &"x".repeat(65)] {
            let error = table.check(name).unwrap_err();
            assert_eq!(error.code(), "checkpoint_name", "{name}");
        }
    }

    #[test]
    fn an_unknown_checkpoint_is_an_error_that_says_so() {
        let error = Checkpoints::default().find("x").unwrap_err();
        assert_eq!(
            error.to_string(),
            "find checkpoint `x`: this session has no such checkpoint; it has none"
        );
    }
}
