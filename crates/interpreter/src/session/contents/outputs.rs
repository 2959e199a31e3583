//! Collecting what commands left in `/tmp/output`.

use futures_util::FutureExt as _;

use crate::error::Result;
use crate::execution::{ProducedFile, SkippedFile};
use crate::session::Session;
use crate::session::contents::Contents;
use crate::session::contents::collection::{Outputs, ROOTS, StoredFiles, state_of};
use crate::session::contents::files::{is_ignored, note_skipped};
use crate::session::effects::Effects;
use crate::session::runtime::Runtime;

/// The folder that commands write results to.
const ROOT: &str = ROOTS[1];
/// Files that are looked at after one command; beyond them they are counted.
const LISTED: u32 = 4096;

impl Session {
    /// Stores the files that processes have made or changed, as those of a cell.
    pub(crate) async fn collect_files(&self) -> Result<(Vec<ProducedFile>, Vec<SkippedFile>)> {
        self.ask(Effects::FILES, |actor| {
            let (runtime, contents, _) = actor.parts();
            runtime.has_files |= runtime.sandbox.is_some();
            async move { Ok(runtime.collect(contents).await) }.boxed()
        })
        .await
    }
}

impl Runtime {
    /// Stores at most so many new and changed files.
    pub(in crate::session) async fn collect_outputs(
        &mut self,
        contents: &mut Contents,
        most: usize,
    ) -> Outputs {
        let Some(sandbox) = &self.sandbox else {
            return Outputs::default();
        };
        let listing = match sandbox
            .guest()
            .list(ROOT, contents.handed_over.stamp, LISTED)
            .await
        {
            Ok(listing) => listing,
            // Code may remove the folder.
            Err(error) => {
                tracing::info!(error = &error as &dyn std::error::Error, "could not list files");
                return Outputs::default();
            }
        };
        let mut stored = StoredFiles::default();
        note_skipped(&listing, u32::MAX, &mut stored.skipped);
        let unlisted = listing.total.saturating_sub(listing.files.len() as u64);
        let mut news = listing.files;
        news.retain(|entry| !is_ignored(&entry.path));
        news.retain(|entry| {
            contents.handed_over.seen.get(&entry.path) != Some(&(entry.size, entry.mtime_ns))
        });
        news.sort_by(|one, other| one.path.cmp(&other.path));
        let states: Vec<_> = news.iter().map(state_of).collect();
        let deadline = Self::collect_deadline();
        let rest = self.store_files(news, ROOT, most, deadline, &mut stored).await;
        let behind = rest.count();
        for (path, state) in states.into_iter().rev().skip(behind) {
            if stored.unkept.contains(&path) {
                continue;
            }
            // A cell need not hand over what a command has.
            if stored.files.iter().any(|file| file.path == path) {
                contents.collected.note(&path, state);
            }
            contents.handed_over.seen.insert(path, state);
        }
        let left = unlisted + behind as u64;
        let outputs = Outputs {
            total: stored.files.len() as u64 + left,
            files: stored.files,
            skipped: stored.skipped,
        };
        // What is left over must be listed again.
        if left == 0 && stored.unkept.is_empty() {
            contents.handed_over.stamp = Some(listing.stamp);
        }
        outputs
    }
}
