//! Collecting what commands left in `/tmp/output`.

use std::collections::HashMap;

use super::actor::Actor;
use super::files::{ROOTS, escape, note_skipped};
use crate::error::Result;
use crate::execution::{ProducedFile, SkippedFile};

/// The folder that commands write results to.
const ROOT: &str = ROOTS[1];
/// Files that are looked at after one command; beyond them they are counted.
const LISTED: u32 = 4096;

/// New and changed files after a command.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    pub(crate) files: Vec<ProducedFile>,
    pub(crate) skipped: Vec<SkippedFile>,
    /// How many files there were to hand over, those beyond the limit included: they come after the next command.
    pub(crate) total: u64,
}

/// Files that commands have already returned. Cells have a separate record: a file that a cell has
/// returned is new to the caller of a command.
#[derive(Debug, Default)]
pub(super) struct HandedOver {
    stamp: Option<u64>,
    seen: HashMap<String, (u64, i64)>,
}

impl Actor {
    /// Stores at most so many new and changed files.
    pub(super) async fn collect_outputs(&mut self, most: usize) -> Result<Outputs> {
        let Some(sandbox) = &self.sandbox else {
            return Ok(Outputs::default());
        };
        let listing = match sandbox.guest().list(ROOT, self.handed_over.stamp, LISTED).await {
            Ok(listing) => listing,
            // Code may remove the folder.
            Err(error) => {
                tracing::info!(error = &error as &dyn std::error::Error, "could not list files");
                return Ok(Outputs::default());
            }
        };
        let mut outputs = Outputs::default();
        note_skipped(&listing, u32::MAX, &mut outputs.skipped);
        let unlisted = listing.total.saturating_sub(listing.files.len() as u64);
        let mut news = listing.files;
        news.retain(|entry| self.handed_over.seen.get(&entry.path) != Some(&(entry.size, entry.mtime_ns)));
        news.sort_by(|one, other| one.path.cmp(&other.path));
        let mut left = unlisted;
        let deadline = Self::collect_deadline();
        for entry in news {
            if outputs.files.len() == most {
                left += 1;
                continue;
            }
            let state = (entry.size, entry.mtime_ns);
            match self.store_file(&entry, ROOT, 0, deadline).await? {
                Ok(Some(file)) => {
                    // A cell need not hand over what a command has.
                    self.collected.note(&entry.path, state);
                    outputs.files.push(file);
                }
                Ok(None) => {}
                Err(reason) => outputs.skipped.push(SkippedFile {
                    path: escape(&entry.path),
                    reason,
                }),
            }
            self.handed_over.seen.insert(entry.path, state);
        }
        outputs.total = outputs.files.len() as u64 + left;
        // What is left over must be listed again.
        if left == 0 {
            self.handed_over.stamp = Some(listing.stamp);
        }
        Ok(outputs)
    }
}
