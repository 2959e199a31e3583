//! Files that a session has collected from its sandbox.

use std::collections::HashMap;

use cellblock_protocol::FileEntry;

use crate::execution::{ProducedFile, SkippedFile};

/// Trees that are collected.
pub(in crate::session) const ROOTS: [&str; 2] = ["/workspace", "/tmp/output"];

/// New and changed files after a command.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    pub(crate) files: Vec<ProducedFile>,
    pub(crate) skipped: Vec<SkippedFile>,
    /// Number of files to hand over, those beyond the limit included: they come after the next command.
    pub(crate) total: u64,
}

/// Files that were collected before.
#[derive(Clone, Debug, Default)]
pub(in crate::session) struct CollectionState {
    pub(super) stamps: [Option<u64>; ROOTS.len()],
    /// Size and time of files that were collected, to tell those that a coarse clock reports twice.
    pub(super) seen: HashMap<String, (u64, i64)>,
}

/// Files that were stored, and those that were not, with reasons.
#[derive(Debug, Default)]
pub(in crate::session) struct StoredFiles {
    pub(in crate::session) files: Vec<ProducedFile>,
    pub(in crate::session) skipped: Vec<SkippedFile>,
    /// Paths of files that the host could not store now.
    pub(in crate::session) unkept: Vec<String>,
}

/// Files that commands have already returned. Cells have a separate record: a file that a cell has
/// returned is new to the caller of a command.
#[derive(Debug, Default)]
pub(in crate::session) struct HandedOver {
    pub(super) stamp: Option<u64>,
    pub(super) seen: HashMap<String, (u64, i64)>,
}

impl CollectionState {
    /// A file was handed over by other means.
    pub(in crate::session) fn note(&mut self, path: &str, state: (u64, i64)) {
        self.seen.insert(path.to_owned(), state);
    }
}

/// Returns the state that distinguishes a version of a file from the next one.
pub(in crate::session) fn state_of(entry: &FileEntry) -> (String, (u64, i64)) {
    (entry.path.clone(), (entry.size, entry.mtime_ns))
}
