//! Single files of a session's sandbox, for reading, writing and listing them.

use std::fs::File;

use schemars::JsonSchema;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::execution::SkippedFile;
use crate::session::contents::Contents;
use crate::session::contents::files::{download, escape, note_skipped};
use crate::session::contents::skills::check_change;
use crate::session::journal::Journal;
use crate::session::runtime::Runtime;

/// Listing of a folder of a sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileListing {
    /// Its regular files, in order of their paths.
    pub files: Vec<ListedFile>,
    /// Files that are not listed, with reasons.
    pub skipped: Vec<SkippedFile>,
    /// Number of all regular files.
    pub total: u64,
}

/// A regular file of a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ListedFile {
    /// Its path in the sandbox; control characters are escaped, and a file with such a name cannot
    /// be requested.
    pub path: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Time of the last write, in milliseconds since 1970.
    pub modified_unix_ms: i64,
}

/// A copy of a sandbox's file.
#[derive(Debug)]
pub struct OpenedFile {
    /// Its bytes, in a file without a name, from its start.
    pub content: File,
    /// Number of bytes.
    pub bytes: u64,
    /// Changes whenever the file in the sandbox does.
    pub version: String,
}

impl Runtime {
    pub(in crate::session) async fn list_files(&self, root: &str, most: u32) -> Result<FileListing> {
        let Some(sandbox) = &self.sandbox else {
            return Ok(FileListing::default());
        };
        let listing = sandbox.guest().list(root, None, most).await?;
        let mut skipped = Vec::new();
        note_skipped(&listing, most, &mut skipped);
        let mut files: Vec<_> = listing
            .files
            .into_iter()
            .map(|entry| ListedFile {
                path: escape(&entry.path),
                bytes: entry.size,
                modified_unix_ms: entry.mtime_ns / 1_000_000,
            })
            .collect();
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(FileListing {
            files,
            skipped,
            total: listing.total,
        })
    }

    pub(in crate::session) async fn open_file(&self, path: &str) -> Result<OpenedFile> {
        let Some(sandbox) = &self.sandbox else {
            return Err(none(path));
        };
        let guest = sandbox.guest();
        // A file that is written meanwhile has a newer version than is told, never an older one.
        let (_, _, stamp) = guest.read_stamped(path, 0, 1).await?;
        let (content, bytes) = download(guest, path, self.limits.collected_file_bytes).await?;
        let version = stamp.map_or_else(String::new, |stamp| {
            format!("{:x}-{:x}-{:x}", stamp.inode, stamp.ctime_ns, stamp.size)
        });
        Ok(OpenedFile {
            content,
            bytes,
            version,
        })
    }

    pub(in crate::session) async fn put_file(
        &mut self,
        contents: &mut Contents,
        journal: &mut Journal,
        path: &str,
        file: File,
    ) -> Result<()> {
        check_change(path)?;
        self.ready(contents, journal).await?;
        let sandbox = self.sandbox.as_ref().ok_or(Error::Closed)?;
        self.has_files = true;
        sandbox.guest().write(path, 0o644, file).await?;
        let (_, _, stamp) = sandbox.guest().read_stamped(path, 0, 1).await?;
        if let Some(stamp) = stamp {
            contents.collected.note(path, (stamp.size, stamp.mtime_ns));
        }
        Ok(())
    }

    pub(in crate::session) async fn remove_file(&self, path: &str) -> Result<()> {
        check_change(path)?;
        let Some(sandbox) = &self.sandbox else {
            return Err(none(path));
        };
        Ok(sandbox.guest().remove(path).await?)
    }
}

fn none(path: &str) -> Error {
    let path = escape(path);
    Error::NoFile { path }
}
