//! Counts what sandboxes could leave behind on the host, and tells what is left.
//!
//! A leak test takes a [`Snapshot`] before, does its work, and asks for the [`Difference`] after. Processes,
//! mounts, namespaces and cgroups are the whole machine's, so such a test belongs into a test binary of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

mod ancestry;
mod find;
mod own;

pub use own::{Count, Owner, Uncounted};

/// What a snapshot looks at beside the things of the whole machine.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// Directories whose entries are counted.
    pub folders: Vec<PathBuf>,
    /// A process whose open descriptors are counted, and whose descendants are looked for.
    pub process: Option<u32>,
}

impl Scope {
    /// Looks at the running test itself.
    pub fn this_process() -> Self {
        Self {
            folders: Vec::new(),
            process: Some(std::process::id()),
        }
    }

    /// Also counts the entries of `folder`, which need not exist.
    #[must_use]
    pub fn folder(mut self, folder: impl AsRef<Path>) -> Self {
        self.folders.push(folder.as_ref().to_path_buf());
        self
    }
}

/// What exists at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    processes: BTreeSet<String>,
    mounts: BTreeSet<String>,
    namespaces: BTreeSet<String>,
    cgroups: BTreeSet<String>,
    folders: BTreeSet<String>,
    /// Kind of descriptor to how many are open: numbers and inodes change without anything leaking.
    descriptors: BTreeMap<String, usize>,
}

impl Snapshot {
    /// Looks at everything now.
    pub fn take(scope: &Scope) -> Self {
        Self {
            processes: find::processes(scope.process),
            mounts: find::mounts(),
            namespaces: find::namespaces(),
            cgroups: find::our_cgroups(),
            folders: scope
                .folders
                .iter()
                .flat_map(|folder| find::entries(folder))
                .collect(),
            descriptors: scope.process.map(find::descriptors).unwrap_or_default(),
        }
    }

    /// Tells what `after` has and this snapshot has not.
    pub fn difference(&self, after: &Self) -> Difference {
        let gained = |before: &BTreeSet<String>, after: &BTreeSet<String>| {
            after.difference(before).cloned().collect::<Vec<_>>()
        };
        let descriptors = after.descriptors.iter().filter_map(|(kind, count)| {
            let before = self.descriptors.get(kind).copied().unwrap_or_default();
            (*count > before).then(|| format!("{kind} ({before} before, {count} after)"))
        });
        Difference {
            processes: gained(&self.processes, &after.processes),
            mounts: gained(&self.mounts, &after.mounts),
            namespaces: gained(&self.namespaces, &after.namespaces),
            cgroups: gained(&self.cgroups, &after.cgroups),
            folders: gained(&self.folders, &after.folders),
            descriptors: descriptors.collect(),
        }
    }

    /// Tells what is left once the kernel had up to `patience` to finish what it frees in the background.
    pub fn left_after(&self, scope: &Scope, patience: Duration) -> Difference {
        let deadline = Instant::now() + patience;
        loop {
            let difference = self.difference(&Self::take(scope));
            if difference.is_empty() || Instant::now() >= deadline {
                return difference;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// What was gained between two snapshots; its display is a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Processes named `cellblock*`, and descendants of the process looked at.
    pub processes: Vec<String>,
    /// Mounts of this mount namespace.
    pub mounts: Vec<String>,
    /// Namespaces that some process is in.
    pub namespaces: Vec<String>,
    /// Control groups named `cellblock-*`.
    pub cgroups: Vec<String>,
    /// Entries of the directories looked at.
    pub folders: Vec<String>,
    /// Kinds of descriptors that the process looked at has more of.
    pub descriptors: Vec<String>,
}

impl Difference {
    /// Tells whether nothing was gained.
    pub fn is_empty(&self) -> bool {
        self.kinds().iter().all(|(_, gained)| gained.is_empty())
    }

    fn kinds(&self) -> [(&'static str, &[String]); 6] {
        [
            ("process", &self.processes),
            ("mount", &self.mounts),
            ("namespace", &self.namespaces),
            ("cgroup", &self.cgroups),
            ("directory entry", &self.folders),
            ("descriptor", &self.descriptors),
        ]
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("nothing is left");
        }
        for (kind, gained) in self.kinds() {
            for item in gained {
                writeln!(f, "{kind} left: {item}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
