//! The way of a snapshot into another room, as one stream: the length of a list, the list of
//! entries as JSON, and the contents of the files in its order.

use std::path::{Component, PathBuf};

use rustix::fs::Mode;
use serde::{Deserialize, Serialize};

use super::arena::Arena;
use super::tree::{Kind, MAX_ENTRIES, TreeEntry};
use super::{Snapshots, TREES};
use crate::init::path::Refusal;

/// Maximum size of the list: that many entries, each with a path of ordinary length.
const MAX_LIST: u64 = 64 * 1024 * 1024;
/// Size of its length.
const LENGTH: usize = 8;

/// An entry of a tree, on its way.
#[derive(Debug, Serialize, Deserialize)]
struct TransferEntry {
    path: PathBuf,
    mode: u32,
    modified: (i64, i64),
    kind: PassingKind,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PassingKind {
    Directory,
    Link(Vec<u8>),
    File { length: u64, shared: bool },
    Same(PathBuf),
}

/// A snapshot that arrives.
#[derive(Debug, Default)]
pub(super) struct SnapshotReceiver {
    /// Received part of the list, with its length.
    list: Vec<u8>,
    /// Writer of the contents, as soon as the list is complete.
    contents: Option<Contents>,
}

#[derive(Debug)]
struct Contents {
    trees: [Vec<TransferEntry>; TREES.len()],
    arena: Arena,
    total: u64,
    arrived: u64,
}

impl Snapshots {
    /// Returns a part of a snapshot's stream, and whether it is the last one.
    pub(in crate::init) fn read(
        &self,
        number: u64,
        offset: u64,
        length: u64,
    ) -> Result<(Vec<u8>, bool), Refusal> {
        let (Some(arena), Some(trees)) = (&self.arena, self.kept.get(&number)) else {
            return Err(unknown(number));
        };
        let list: Vec<Vec<TransferEntry>> = trees
            .iter()
            .map(|tree| tree.iter().map(TransferEntry::of).collect())
            .collect();
        let list = serde_json::to_vec(&list).map_err(|error| broken(&error.to_string()))?;
        let mut head = (list.len() as u64).to_be_bytes().to_vec();
        head.extend(list);
        let mut part = Vec::new();
        let end = offset.saturating_add(length);
        let mut at = head.len() as u64;
        if offset < at {
            let from = usize::try_from(offset).unwrap_or(usize::MAX);
            let to = usize::try_from(end.min(at)).unwrap_or(usize::MAX);
            part.extend_from_slice(&head[from..to]);
        }
        for entry in trees.iter().flatten() {
            let Kind::File { content, .. } = &entry.kind else {
                continue;
            };
            let (start, size) = (at, content.length());
            at += size;
            if at > offset && start < end {
                let from = offset.max(start) - start;
                arena.read(content, from, end.min(at) - start - from, &mut part)?;
            }
        }
        Ok((part, end >= at))
    }

    /// Adds a part of a snapshot of another room.
    pub(in crate::init) fn write(&mut self, number: u64, part: &[u8], last: bool) -> Result<(), Refusal> {
        if self.kept.contains_key(&number) {
            return Err(Refusal::new("exists", format!("snapshot {number} exists")));
        }
        let mut arriving = self.arriving.take().unwrap_or_default();
        arriving.add(part)?;
        if !last {
            self.arriving = Some(arriving);
            return Ok(());
        }
        // The contents come in an arena of their own, which becomes the room's if it has none.
        let (trees, arena) = arriving.finish()?;
        if self.arena.is_some() {
            return Err(Refusal::new("exists", "the sandbox has snapshots of its own"));
        }
        self.arena = Some(arena);
        self.kept.insert(number, trees);
        Ok(())
    }
}

impl SnapshotReceiver {
    fn add(&mut self, mut part: &[u8]) -> Result<(), Refusal> {
        if self.contents.is_none() {
            let wanted = self.wanted()?;
            let more = part.len().min(wanted - self.list.len());
            self.list.extend_from_slice(&part[..more]);
            part = &part[more..];
            if wanted == LENGTH && self.list.len() == LENGTH {
                // Only now is the length known.
                return self.add(part);
            }
            if wanted > LENGTH && self.list.len() == wanted {
                self.contents = Some(Contents::new(&self.list[LENGTH..])?);
            }
        }
        match &mut self.contents {
            Some(contents) => contents.add(part),
            None => Ok(()),
        }
    }

    /// Returns how long the list is with its length, as far as that is known.
    fn wanted(&self) -> Result<usize, Refusal> {
        let Some(length) = self.list.first_chunk::<LENGTH>() else {
            return Ok(LENGTH);
        };
        let length = u64::from_be_bytes(*length);
        if length > MAX_LIST {
            return Err(broken("its list is too long"));
        }
        Ok(LENGTH + usize::try_from(length).unwrap_or(usize::MAX - LENGTH))
    }

    fn finish(self) -> Result<([Vec<TreeEntry>; TREES.len()], Arena), Refusal> {
        match self.contents {
            Some(mut contents) if contents.arrived == contents.total => {
                let mut trees: [Vec<TreeEntry>; TREES.len()] = Default::default();
                for (tree, passing) in trees.iter_mut().zip(contents.trees) {
                    *tree = passing
                        .into_iter()
                        .map(|entry| entry.arrived(&mut contents.arena))
                        .collect();
                }
                Ok((trees, contents.arena))
            }
            _ => Err(broken("it ends early")),
        }
    }
}

impl Contents {
    fn new(list: &[u8]) -> Result<Self, Refusal> {
        let trees: [Vec<TransferEntry>; TREES.len()] =
            serde_json::from_slice(list).map_err(|error| broken(&error.to_string()))?;
        let mut total = 0_u64;
        for entry in trees.iter().flatten() {
            entry.check()?;
            if let PassingKind::File { length, .. } = entry.kind {
                total = total
                    .checked_add(length)
                    .ok_or_else(|| broken("its files are too long"))?;
            }
        }
        if trees.iter().any(|tree| tree.len() > MAX_ENTRIES) {
            return Err(broken("it has too many files"));
        }
        Ok(Self {
            trees,
            arena: Arena::new()?,
            total,
            arrived: 0,
        })
    }

    fn add(&mut self, part: &[u8]) -> Result<(), Refusal> {
        if part.len() as u64 > self.total - self.arrived {
            return Err(broken("it is longer than its list says"));
        }
        self.arena.append(self.arrived, part)?;
        self.arrived += part.len() as u64;
        Ok(())
    }
}

impl TransferEntry {
    fn of(entry: &TreeEntry) -> Self {
        Self {
            path: entry.path.clone(),
            mode: entry.mode.as_raw_mode(),
            modified: entry.modified,
            kind: match &entry.kind {
                Kind::Directory => PassingKind::Directory,
                Kind::Link(target) => PassingKind::Link(target.clone()),
                Kind::File { content, shared, .. } => PassingKind::File {
                    length: content.length(),
                    shared: *shared,
                },
                Kind::Same(path) => PassingKind::Same(path.clone()),
            },
        }
    }

    /// Checks that its paths stay below the root: they were written by another room.
    fn check(&self) -> Result<(), Refusal> {
        let same = match &self.kind {
            PassingKind::Same(path) => Some(path),
            _ => None,
        };
        let inside = |path: &PathBuf| path.components().all(|part| matches!(part, Component::Normal(_)));
        if std::iter::once(&self.path).chain(same).all(inside) {
            Ok(())
        } else {
            Err(broken("it has a path that leaves its directory"))
        }
    }

    fn arrived(self, arena: &mut Arena) -> TreeEntry {
        TreeEntry {
            path: self.path,
            mode: Mode::from_raw_mode(self.mode & 0o7777),
            modified: self.modified,
            kind: match self.kind {
                PassingKind::Directory => Kind::Directory,
                PassingKind::Link(target) => Kind::Link(target),
                PassingKind::File { length, shared } => Kind::File {
                    content: arena.appended(length),
                    inode: 0,
                    shared,
                    state: None,
                },
                PassingKind::Same(path) => Kind::Same(path),
            },
        }
    }
}

fn unknown(number: u64) -> Refusal {
    Refusal::new("not_found", format!("there is no snapshot {number}"))
}

fn broken(reason: &str) -> Refusal {
    Refusal::new(
        "broken",
        format!("a snapshot of another sandbox cannot be read: {reason}"),
    )
}
