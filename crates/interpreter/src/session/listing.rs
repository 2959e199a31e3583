//! Listing the files that a session's code has made or was given.

use super::actor::Actor;
use super::files::{ROOTS, relative_name};
use crate::error::Result;

/// Files of a sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxFiles {
    /// In the order of their paths.
    pub files: Vec<SandboxFile>,
    /// Regular files in all, those beyond the limit included.
    pub total: u64,
}

/// A file of a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SandboxFile {
    /// Its path in the sandbox.
    pub path: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// When it was last written, in milliseconds since 1970.
    pub modified_unix_ms: i64,
}

impl Actor {
    /// Those whose names can be used outside; the others are only counted.
    pub(super) async fn list_files(&mut self) -> Result<SandboxFiles> {
        let Some(sandbox) = &self.sandbox else {
            return Ok(SandboxFiles::default());
        };
        let mut listed = SandboxFiles::default();
        for root in ROOTS {
            let listing = sandbox.guest().list(root, None, self.limits.files).await?;
            listed.total += listing.total;
            let named = listing
                .files
                .into_iter()
                .filter(|file| relative_name(&file.path, root).is_some());
            listed.files.extend(named.map(|file| SandboxFile {
                path: file.path,
                bytes: file.size,
                modified_unix_ms: file.mtime_ns / 1_000_000,
            }));
        }
        listed.files.sort();
        listed.files.truncate(self.limits.files as usize);
        Ok(listed)
    }
}
