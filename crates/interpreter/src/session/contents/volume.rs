//! The volume of a session: written into each of its sandboxes, and saved from there.
//!
//! The folder is hostile like all of the sandbox. Only regular files are taken over, under paths
//! that may stand in a path of the host, and a revision is saved whole or not at all.

mod open;
mod save;

use std::time::Duration;

use crate::error::Result;
use crate::session::contents::Contents;
use crate::session::journal::Journal;
use crate::session::runtime::Runtime;
use crate::volume::VOLUME_FOLDER;

pub(in crate::session) use open::OpenVolume;

/// Maximum time of a save; a guest must not hold up its session for good.
const SAVE_LIMIT: Duration = Duration::from_mins(5);

impl Contents {
    /// Lets other sessions write the volume.
    pub(in crate::session) async fn release_volume(&mut self) {
        if let Some(open) = self.volume.take()
            && let Some(keeper) = &open.volume.keeper
        {
            keeper.release(!open.incomplete).await;
        }
    }
}

impl Runtime {
    /// Writes the files of the volume into a sandbox that was just taken.
    pub(in crate::session) async fn fill_volume(
        &mut self,
        contents: &mut Contents,
        journal: &mut Journal,
    ) -> Result<()> {
        let (Some(open), Some(sandbox)) = (&mut contents.volume, &self.sandbox) else {
            return Ok(());
        };
        let listing = open.fill(sandbox.guest(), &self.shared.store).await?;
        // Cells hand over only what they make themselves.
        for file in &listing.files {
            contents.collected.note(&file.path, (file.size, file.mtime_ns));
        }
        let (name, revision) = (&open.volume.name, open.volume.revision);
        let again = std::mem::replace(&mut open.reopened, true).then(|| {
            format!(
                "the new sandbox has the files of the volume `{name}` in {VOLUME_FOLDER}, as of \
                 revision {revision}"
            )
        });
        let notes: Vec<_> = open.volume.notice.take().into_iter().chain(again).collect();
        self.tell(journal, notes);
        Ok(())
    }

    /// Saves what was changed in the volume; returns notes for the model. What a try changes does
    /// not count yet.
    pub(in crate::session) async fn save_volume(&mut self, contents: &mut Contents) -> Vec<String> {
        if self.trial.is_some() {
            return Vec::new();
        }
        let (Some(open), Some(sandbox)) = (&mut contents.volume, &self.sandbox) else {
            return Vec::new();
        };
        let (true, Some(keeper)) = (open.filled, open.volume.keeper.clone()) else {
            return Vec::new();
        };
        let saving = open.save(sandbox.guest(), &self.shared.store, &*keeper);
        let saved = tokio::time::timeout(SAVE_LIMIT, saving).await;
        let saved = saved.unwrap_or_else(|_| {
            let limit = SAVE_LIMIT.as_secs();
            Err(format!(
                "it took longer than {limit} s; write fewer or smaller files"
            ))
        });
        open.incomplete = saved.is_err();
        match saved {
            Ok(skipped) if skipped == open.skipped => Vec::new(),
            Ok(skipped) => {
                open.skipped.clone_from(&skipped);
                skipped.into_iter().collect()
            }
            Err(reason) => vec![format!(
                "the volume `{}` was not saved: {reason}. Its revision {} is kept",
                open.volume.name, open.volume.revision
            )],
        }
    }

    /// Saves what a cell has changed; its own note reports what could not be.
    pub(in crate::session) async fn save_volume_after_cell(
        &mut self,
        contents: &mut Contents,
        journal: &mut Journal,
    ) {
        let notes = self.save_volume(contents).await;
        journal.unreported.extend(notes);
    }

    /// Saves what was changed between cells; the next cell or command reports what could not be.
    pub(in crate::session) async fn save_volume_between_cells(
        &mut self,
        contents: &mut Contents,
        journal: &mut Journal,
    ) {
        let notes = self.save_volume(contents).await;
        self.tell(journal, notes);
    }

    /// Saves what the end of the sandbox would take along.
    pub(in crate::session) async fn save_volume_at_end(&mut self, contents: &mut Contents) {
        let notes = self.save_volume(contents).await;
        if let Some(open) = &mut contents.volume {
            open.filled = false;
            if !notes.is_empty() {
                open.volume.notice = Some(notes.join(". "));
            }
        }
    }

    /// Keeps notes for the next cell, and for the next command.
    fn tell(&mut self, journal: &mut Journal, notes: Vec<String>) {
        if notes.is_empty() {
            return;
        }
        let lost = self.lost_files.take().into_iter().chain(notes.iter().cloned());
        self.lost_files = Some(lost.collect::<Vec<_>>().join(". "));
        journal.unreported.extend(notes);
    }
}
