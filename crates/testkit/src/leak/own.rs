//! Resources of one process and its launchers, among everything that a busy machine holds.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::{ancestry, find};

/// Owner of the counted resources. Other processes may run sandboxes on the same machine; ancestry
/// and names distinguish theirs.
#[derive(Debug, Clone, Default)]
pub struct LeakOwner {
    /// The process whose descendants and descriptors are counted.
    process: u32,
    /// Start times by process id of what was seen below it: what outlives its parents is still found.
    known: BTreeMap<u32, String>,
    /// Names of those processes' cgroup directories.
    groups: BTreeSet<String>,
    /// Directories that are this owner's alone, counted as whole trees.
    folders: Vec<PathBuf>,
}

/// Counts of everything that a sandbox could leave.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Count {
    /// Processes below the owner, zombies included, and those that were once below it.
    pub processes: usize,
    /// Threads of those processes.
    pub threads: usize,
    /// Mounts of the host's mount table.
    pub mounts: usize,
    /// Namespaces that those processes are in and the owner is not.
    pub namespaces: usize,
    /// Directories of the owner's launchers in every cgroup hierarchy, with the rooms below them.
    pub cgroups: usize,
    /// Open descriptors of the owner.
    pub descriptors: usize,
    /// Files and directories in the owner's directories.
    pub entries: usize,
    /// Id locks that the owner or a process below it holds.
    pub id_locks: usize,
}

impl Count {
    /// Whether there is no more of anything than in the other count. Less is fine: what was only
    /// about to end when the other was taken may be gone by now.
    pub fn is_within(&self, other: &Self) -> bool {
        let pairs = [
            (self.processes, other.processes),
            (self.threads, other.threads),
            (self.mounts, other.mounts),
            (self.namespaces, other.namespaces),
            (self.cgroups, other.cgroups),
            (self.descriptors, other.descriptors),
            (self.entries, other.entries),
            (self.id_locks, other.id_locks),
        ];
        pairs.iter().all(|(this, other)| this <= other)
    }
}

impl LeakOwner {
    /// Counts for the running test.
    pub fn this_process() -> Self {
        Self::of(std::process::id())
    }

    /// Counts for another process, which need not live any more.
    pub fn of(process: u32) -> Self {
        let mut owner = Self {
            process,
            ..Self::default()
        };
        owner.look();
        owner
    }

    /// Also counts what is in this directory, which no other test may use.
    #[must_use]
    pub fn folder(mut self, folder: impl AsRef<Path>) -> Self {
        self.folders.push(folder.as_ref().to_path_buf());
        self
    }

    /// Remembers what is below the owner now. Called before something is killed: orphans descend from nobody.
    pub fn look(&mut self) {
        for process in ancestry::below(self.process, &self.known) {
            self.groups
                .insert(format!("cellblock-{}-{}", process.id, process.started));
            self.known.insert(process.id, process.started);
        }
    }

    /// Lists what is below the owner: process ids and names.
    pub fn processes(&self) -> Vec<(u32, String)> {
        ancestry::below(self.process, &self.known)
            .into_iter()
            .map(|process| (process.id, process.name))
            .collect()
    }

    /// Counts everything now.
    pub fn count(&mut self) -> Count {
        self.look();
        let below = ancestry::below(self.process, &self.known);
        let ids = || below.iter().map(|process| process.id);
        Count {
            processes: below.len(),
            threads: ids().map(ancestry::threads).sum(),
            mounts: ancestry::mounts_of_sandboxes(&self.folders),
            namespaces: ancestry::namespaces(ids())
                .difference(&ancestry::namespaces(std::iter::once(std::process::id())))
                .count(),
            cgroups: ancestry::cgroups(&self.groups).len(),
            descriptors: find::descriptors(self.process).values().sum(),
            entries: self.folders.iter().map(|folder| tree(folder)).sum(),
            id_locks: ancestry::id_locks(&ids().chain([self.process]).collect()),
        }
    }

    /// Waits until the count is within `most`; the kernel frees namespaces and cgroups in the background.
    pub fn until(&mut self, most: &Count, patience: Duration) -> Result<(), LeakReport> {
        let deadline = Instant::now() + patience;
        loop {
            let now = self.count();
            if now.is_within(most) {
                return Ok(());
            }
            if Instant::now() >= deadline {
                let left = ancestry::below(self.process, &self.known)
                    .iter()
                    .map(|process| format!("{} {}", process.id, process.name))
                    .chain(ancestry::cgroups(&self.groups))
                    .chain(
                        find::descriptors(self.process)
                            .iter()
                            .map(|(kind, count)| format!("{count} × {kind}")),
                    )
                    .collect();
                return Err(LeakReport {
                    most: Box::new(most.clone()),
                    now: Box::new(now),
                    left,
                });
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A count that did not become what it was.
#[derive(Debug, Clone)]
pub struct LeakReport {
    most: Box<Count>,
    now: Box<Count>,
    left: Vec<String>,
}

impl fmt::Display for LeakReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "at most {:?}\nfound   {:?}", self.most, self.now)?;
        self.left.iter().try_for_each(|line| writeln!(f, "  {line}"))
    }
}

impl std::error::Error for LeakReport {}

fn tree(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| {
            let below = entry.file_type().is_ok_and(|kind| kind.is_dir());
            1 + if below { tree(&entry.path()) } else { 0 }
        })
        .sum()
}
