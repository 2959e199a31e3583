//! Snapshots of `/workspace` and `/tmp`, for checkpoints of a session.
//!
//! The guest copies what has changed since the last snapshot or restoration into an anonymous file
//! ([`arena`]), and later writes it back. The host lets it do so only while the kernel is idle and
//! nothing else runs in the room.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::AsFd;
use std::path::Path;

use super::path::{Refusal, Roots};
use arena::Arena;
pub(super) use changes::Differences;
use changes::TreeComparison;
use passage::SnapshotReceiver;
use restore::TreeRestorer;
use tree::{Kind, KnownContents, TreeEntry, TreeWriter};

mod arena;
mod changes;
mod passage;
mod restore;
mod tree;

/// The trees, each with what is left out: datasets belong to the host.
const TREES: [(&str, &[&str]); 2] = [("/workspace", &[]), ("/tmp", &["data"])];

/// Numbers of a new snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SnapshotSize {
    pub(super) files: u64,
    /// Number of bytes that it has copied.
    pub(super) bytes: u64,
}

/// The snapshots of a room.
#[derive(Debug, Default)]
pub(super) struct Snapshots {
    arena: Option<Arena>,
    kept: BTreeMap<u64, [Vec<TreeEntry>; TREES.len()]>,
    /// The last one that was saved or restored, whose files are likely unchanged.
    last: u64,
    /// One of another room that arrives.
    arriving: Option<SnapshotReceiver>,
}

impl Snapshots {
    /// Saves the trees under a number that no other snapshot has. At most `limit` bytes are copied.
    pub(super) fn save(&mut self, roots: &Roots, number: u64, limit: u64) -> Result<SnapshotSize, Refusal> {
        if self.kept.contains_key(&number) {
            return Err(Refusal::new("exists", format!("snapshot {number} exists")));
        }
        let mut arena = match self.arena.take() {
            Some(arena) => arena,
            None => Arena::new()?,
        };
        let mut left = limit;
        // A rollback and the end of its checkpoint leave only older ones, which have most files as they are.
        let before = self
            .kept
            .get(&self.last)
            .or_else(|| self.kept.values().next_back());
        let mut trees: [Vec<TreeEntry>; TREES.len()] = Default::default();
        let mut result = Ok(());
        for (index, (root, excluded)) in TREES.iter().enumerate() {
            let mut saving = TreeWriter {
                arena: &mut arena,
                known: before.map_or_else(HashMap::new, |trees| known(&trees[index])),
                root,
                excluded,
                left,
                entries: Vec::new(),
                linked: HashMap::new(),
            };
            result = roots
                .place(root)
                .and_then(|place| Ok(tree::open_root(place.root)?))
                .and_then(|directory| saving.walk(&directory, Path::new(""), 0));
            left = saving.left;
            trees[index] = saving.entries;
            if result.is_err() {
                break;
            }
        }
        if let Err(refusal) = result {
            for tree in trees {
                release(&mut arena, tree);
            }
            self.arena = Some(arena);
            return Err(refusal);
        }
        self.arena = Some(arena);
        let files = trees
            .iter()
            .flatten()
            .filter(|entry| !matches!(entry.kind, Kind::Directory));
        let saved = SnapshotSize {
            files: files.count() as u64,
            bytes: limit - left,
        };
        self.kept.insert(number, trees);
        self.last = number;
        Ok(saved)
    }

    /// Makes the trees equal to a snapshot, which is kept.
    pub(super) fn restore(&mut self, roots: &Roots, number: u64) -> Result<(), Refusal> {
        let (Some(arena), Some(trees)) = (&self.arena, self.kept.get_mut(&number)) else {
            return Err(not_found(number));
        };
        for ((root, excluded), entries) in TREES.iter().zip(trees) {
            let place = roots.place(root)?;
            let restoring = TreeRestorer::new(arena, place.root.as_fd(), excluded);
            restoring.restore(entries).map_err(|(path, errno)| {
                let refusal = Refusal::from(errno);
                Refusal::new(
                    refusal.code,
                    format!("`{root}/{}`: {}", path.display(), refusal.message),
                )
            })?;
        }
        self.last = number;
        Ok(())
    }

    /// Returns what differs from a snapshot: at most `most` of the differences, and their number.
    pub(super) fn changes(&self, roots: &Roots, number: u64, most: u32) -> Result<Differences, Refusal> {
        let (Some(arena), Some(trees)) = (&self.arena, self.kept.get(&number)) else {
            return Err(not_found(number));
        };
        let mut differences = Differences::default();
        for (tree, entries) in TREES.into_iter().zip(trees) {
            let directory = tree::open_root(roots.place(tree.0)?.root.as_fd())?;
            TreeComparison::new(arena, tree, entries, most, &mut differences).compare(&directory);
        }
        Ok(differences)
    }

    /// Forgets a snapshot, if there is one of this number.
    pub(super) fn remove(&mut self, number: u64) {
        let (Some(arena), Some(trees)) = (&mut self.arena, self.kept.remove(&number)) else {
            return;
        };
        for tree in trees {
            release(arena, tree);
        }
        if self.kept.is_empty() {
            self.arena = None;
        }
    }
}

fn not_found(number: u64) -> Refusal {
    Refusal::new("not_found", format!("there is no snapshot {number}"))
}

fn known(entries: &[TreeEntry]) -> KnownContents<'_> {
    let files = entries.iter().filter_map(|entry| match &entry.kind {
        Kind::File {
            content,
            state: Some(state),
            ..
        } => Some((entry.path.as_path(), (content, *state))),
        _ => None,
    });
    files.collect()
}

fn release(arena: &mut Arena, entries: Vec<TreeEntry>) {
    for entry in entries {
        if let Kind::File { content, .. } = entry.kind {
            arena.release(content);
        }
    }
}

#[cfg(test)]
mod tests;
