//! A session's volume as its sandbox has it.

use std::collections::HashMap;

use cellblock_artifact::Store;
use cellblock_sandbox::guest::{DirectoryListing, Guest};

use crate::error::{Error, Result};
use crate::volume::{SessionVolume, VOLUME_FOLDER};

/// A file that is made and removed so that there is a folder.
const PLACE: &str = "/workspace/volume/.place";

/// A volume with what is known of its folder.
#[derive(Debug)]
pub(in crate::session) struct OpenVolume {
    pub(super) volume: SessionVolume,
    /// Whether the sandbox that is there has its files. Otherwise its folder says nothing about the volume.
    pub(super) filled: bool,
    /// Whether it was in a sandbox before.
    pub(super) reopened: bool,
    /// Whether something that was changed is not saved.
    pub(super) incomplete: bool,
    /// The guest's time of the last look at the folder.
    pub(super) stamp: u64,
    /// Size, time and mode of the files as they were last saved.
    pub(super) seen: HashMap<String, (u64, i64, u32)>,
    /// The last note about skipped files, which is not repeated.
    pub(super) skipped: Option<String>,
}

impl OpenVolume {
    pub(in crate::session) fn new(volume: SessionVolume) -> Self {
        Self {
            volume,
            filled: false,
            reopened: false,
            incomplete: false,
            stamp: 0,
            seen: HashMap::new(),
            skipped: None,
        }
    }

    /// Writes its files into a new sandbox.
    pub(super) async fn fill(&mut self, guest: &Guest, store: &Store) -> Result<DirectoryListing> {
        guest.write(PLACE, 0o755, std::io::empty()).await?;
        guest.remove(PLACE).await?;
        for (name, file) in &self.volume.manifest.0 {
            let failed = |reason: &str| {
                let volume = &self.volume.name;
                Error::Request(format!("open the volume `{volume}`: write `{name}`: {reason}"))
            };
            let content = store.verified_file(file.sha256).await.map_err(|error| {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "read a file of a volume"
                );
                failed("its contents cannot be read; the server's log has the reason")
            })?;
            let path = format!("{VOLUME_FOLDER}/{name}");
            if let Err(error) = guest.write(&path, file.mode, content).await {
                return Err(match error.guest_refusal() {
                    Some((_, reason)) => failed(reason),
                    None => error.into(),
                });
            }
        }
        let listing = guest.list(VOLUME_FOLDER, None, self.volume.max_files).await?;
        self.note(&listing);
        self.filled = true;
        Ok(listing)
    }

    /// Notes what the folder has, so that only changes are read.
    pub(super) fn note(&mut self, listing: &DirectoryListing) {
        self.stamp = listing.stamp;
        let files = listing.files.iter();
        self.seen = files
            .map(|file| (file.path.clone(), (file.size, file.mtime_ns, file.mode)))
            .collect();
    }

    /// The sandbox is gone, with everything that was not saved.
    pub(in crate::session) fn lose(&mut self) {
        if std::mem::take(&mut self.filled) && self.volume.keeper.is_some() {
            self.incomplete = true;
            self.volume.notice = Some(format!(
                "changes in the volume `{}` that were not saved in its revision {} are lost",
                self.volume.name, self.volume.revision
            ));
        }
    }
}
