//! Collecting what a cell left in `/workspace` and `/tmp/output`.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::time::Duration;

use cellblock_artifact::{ArtifactDescription, Kind};
use cellblock_protocol::text::acts;
use cellblock_protocol::text::counted;
use cellblock_protocol::{Blob, FileEntry};
use cellblock_sandbox::guest::{DirectoryListing, Guest};
use futures_util::future::join_all;
use tokio::time::Instant;

use crate::error::{Error, Result};
use crate::execution::{ProducedFile, SkippedFile};
use crate::session::contents::Contents;
use crate::session::contents::collection::{CollectionState, ROOTS, StoredFiles, state_of};
use crate::session::contents::skills::check_change;
use crate::session::journal::Journal;
use crate::session::runtime::Runtime;
use crate::session::unkept::UnstoredFile;

/// Number of bytes of a file that are requested at once.
const PART: u64 = 4 * 1024 * 1024;
/// Files that are stored at the same time, and how many bytes they may have together: what a
/// session's files take of the host's memory.
const AT_ONCE: usize = 8;
const BYTES_AT_ONCE: u64 = PART;
/// Maximum time for all files of one cell or command. Those that are left then are named.
const COLLECT_LIMIT: Duration = Duration::from_mins(1);
/// Parts of a path that interest nobody.
const IGNORED: [&str; 4] = ["__pycache__", ".cache", ".config", ".matplotlib"];
/// Longest name that is taken over.
const MAX_NAME: usize = 512;

impl Runtime {
    /// Stores new and changed files; those that cannot be are named with the reason.
    pub(in crate::session) async fn collect(
        &mut self,
        contents: &mut Contents,
    ) -> (Vec<ProducedFile>, Vec<SkippedFile>) {
        let Some(sandbox) = &self.sandbox else {
            return (Vec::new(), Vec::new());
        };
        let guest = sandbox.guest();
        let limit = self.limits.files;
        let [workspace, output] = contents.collected.stamps;
        let listed = tokio::join!(
            guest.list(ROOTS[0], workspace, limit),
            guest.list(ROOTS[1], output, limit)
        );
        let listings = match listed {
            (Ok(workspace), Ok(output)) => [workspace, output],
            // A room that its own code broke is found out by the next cell; this one has its result.
            (Err(error), _) | (_, Err(error)) => {
                tracing::info!(error = &error as &dyn std::error::Error, "could not list files");
                return (Vec::new(), Vec::new());
            }
        };
        let mut stored = StoredFiles::default();
        let deadline = Self::collect_deadline();
        // Taken over at the end only: what could not be stored is collected again after the next cell.
        let mut now = CollectionState::default();
        for (index, listing) in listings.into_iter().enumerate() {
            now.stamps[index] = Some(listing.stamp);
            note_skipped(&listing, limit, &mut stored.skipped);
            let seen = &contents.collected.seen;
            let news: Vec<_> = listing
                .files
                .into_iter()
                .filter(|entry| !is_ignored(&entry.path))
                .filter(|entry| seen.get(&entry.path) != Some(&(entry.size, entry.mtime_ns)))
                .collect();
            now.seen.extend(news.iter().map(state_of));
            let rest = self
                .store_files(news, ROOTS[index], limit as usize, deadline, &mut stored)
                .await;
            stored.skipped.extend(rest.map(|entry| SkippedFile {
                path: escape(&entry.path),
                reason: format!("more than {limit} files"),
            }));
        }
        if stored.unkept.is_empty() {
            contents.collected.stamps = now.stamps;
        }
        now.seen.retain(|path, _| !stored.unkept.contains(path));
        contents.collected.seen.extend(now.seen);
        (stored.files, stored.skipped)
    }

    /// Returns the time by which the files that are collected from now on must be stored.
    pub(in crate::session) fn collect_deadline() -> Instant {
        Instant::now() + COLLECT_LIMIT
    }

    /// Stores files in their order, several at a time, until there are `most`, and returns the ones
    /// that are left. Those that cannot be stored are skipped: what a sandbox does with its files
    /// must not cost a cell its result.
    pub(in crate::session) async fn store_files(
        &self,
        entries: Vec<FileEntry>,
        root: &str,
        most: usize,
        deadline: Instant,
        stored: &mut StoredFiles,
    ) -> impl Iterator<Item = FileEntry> + use<> {
        let mut left = entries.into_iter().peekable();
        while stored.files.len() < most {
            let (mut some, mut bytes) = (Vec::new(), 0_u64);
            let places = AT_ONCE.min(most - stored.files.len());
            while let Some(entry) = left.next_if(|entry| {
                some.len() < places && (some.is_empty() || bytes.saturating_add(entry.size) <= BYTES_AT_ONCE)
            }) {
                bytes = bytes.saturating_add(entry.size);
                some.push(entry);
            }
            if some.is_empty() {
                break;
            }
            let done = join_all(some.iter().map(|entry| self.store_file(entry, root, deadline))).await;
            for (entry, done) in some.iter().zip(done) {
                match done {
                    Ok(file) => stored.files.extend(file),
                    Err(UnstoredFile { reason, again }) => {
                        stored.unkept.extend(again.then(|| entry.path.clone()));
                        let path = escape(&entry.path);
                        stored.skipped.push(SkippedFile { path, reason });
                    }
                }
            }
        }
        left
    }

    /// Stores one file, or says why it cannot be.
    async fn store_file(
        &self,
        entry: &FileEntry,
        root: &str,
        deadline: Instant,
    ) -> Result<Option<ProducedFile>, UnstoredFile> {
        let Some(name) = relative_name(&entry.path, root) else {
            return Err("its name cannot be used outside the sandbox".to_owned().into());
        };
        let limit = self.limits.collected_file_bytes;
        if entry.size > limit {
            return Err(format!("it has {} bytes, the limit is {limit}", entry.size).into());
        }
        let Some(sandbox) = &self.sandbox else {
            return Ok(None);
        };
        let loading = load(sandbox.guest(), &entry.path, entry.size, limit);
        let content = match tokio::time::timeout_at(deadline, loading).await {
            Ok(Ok(content)) => content,
            // If the sandbox itself is broken, the next cell finds out.
            Ok(Err(Error::Sandbox(error))) if !error.is_spill() => return Err(error.to_string().into()),
            // It grew while it was read.
            Ok(Err(Error::Request(reason))) => return Err(reason.into()),
            Ok(Err(error)) => return Err(UnstoredFile::by_host(&entry.path, entry.size, &error)),
            Err(_) => {
                let limit = COLLECT_LIMIT.as_secs();
                return Err(format!("collecting the files took longer than {limit} s").into());
            }
        };
        let about = ArtifactDescription {
            kind: Kind::File,
            media_type: media_type(name).to_owned(),
            origin: None,
        };
        let bytes = content.len();
        let id = match content {
            Content::Memory(bytes) => self.shared.store.put(bytes, &about).await,
            Content::File(file, _) => self.shared.store.put_file(file, &about).await,
        };
        let id = id.map_err(|error| UnstoredFile::by_host(&entry.path, bytes, &error))?;
        Ok(Some(ProducedFile {
            path: entry.path.clone(),
            name: name.to_owned(),
            bytes,
            sha256: id.to_string(),
        }))
    }

    pub(in crate::session) async fn read_file(&mut self, path: &str, most: Option<u64>) -> Result<Vec<u8>> {
        let Some(sandbox) = &self.sandbox else {
            return Err(Error::Request(format!(
                "read `{path}`: nothing has run in this session yet"
            )));
        };
        let limit = self.limits.collected_file_bytes;
        let limit = most.map_or(limit, |most| most.min(limit));
        match load(sandbox.guest(), path, PART, limit).await? {
            Content::Memory(content) => Ok(content),
            Content::File(mut file, _) => {
                let mut content = Vec::new();
                file.read_to_end(&mut content)
                    .map_err(|source| spool(path, &source))?;
                Ok(content)
            }
        }
    }

    pub(in crate::session) async fn write_file(
        &mut self,
        contents: &mut Contents,
        journal: &mut Journal,
        path: &str,
        content: &[u8],
    ) -> Result<()> {
        check_change(path)?;
        self.ready(contents, journal).await?;
        let sandbox = self.sandbox.as_ref().ok_or(Error::Closed)?;
        sandbox.guest().write(path, 0o644, content).await?;
        Ok(())
    }
}

/// The bytes of a file of a sandbox.
#[derive(Debug)]
enum Content {
    Memory(Vec<u8>),
    /// In an unlinked file of the host, read from its start, with its length.
    File(File, u64),
}

impl Content {
    fn len(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File(_, length) => *length,
        }
    }
}

/// Copies a file of the sandbox into an unlinked file of the host, positioned at its start.
pub(in crate::session) async fn download(guest: &Guest, path: &str, limit: u64) -> Result<(File, u64)> {
    copy_from(guest, path, limit, None).await
}

/// Reads a file of about this size: into memory if a single part has all of it, which saves a file
/// and a second reading.
async fn load(guest: &Guest, path: &str, size: u64, limit: u64) -> Result<Content> {
    // One byte more than there is shows that there is no more.
    match guest.read(path, 0, size.saturating_add(1).min(PART)).await? {
        (Blob::Memory(bytes), true) => {
            check_length(path, bytes.len() as u64, limit)?;
            Ok(Content::Memory(bytes))
        }
        first => {
            let (file, length) = copy_from(guest, path, limit, Some(first)).await?;
            Ok(Content::File(file, length))
        }
    }
}

/// Copies a file, of which a first part may be there, into an unlinked file.
async fn copy_from(
    guest: &Guest,
    path: &str,
    limit: u64,
    mut first: Option<(Blob, bool)>,
) -> Result<(File, u64)> {
    let spool = |source| spool(path, &source);
    let mut file = tempfile::tempfile().map_err(spool)?;
    let mut offset = 0;
    loop {
        let (blob, eof) = match first.take() {
            Some(first) => first,
            None => guest.read(path, offset, PART).await?,
        };
        if blob.is_empty() && !eof {
            return Err(
                cellblock_sandbox::Error::protocol("guest", "a read neither moved on nor ended").into(),
            );
        }
        offset += blob.len();
        check_length(path, offset, limit)?;
        match blob {
            Blob::Memory(bytes) => file.write_all(&bytes).map_err(spool)?,
            Blob::File(..) => {
                std::io::copy(&mut blob.reader(), &mut file).map_err(spool)?;
            }
        }
        if eof {
            break;
        }
    }
    std::io::Seek::rewind(&mut file).map_err(spool)?;
    Ok((file, offset))
}

fn check_length(path: &str, length: u64, limit: u64) -> Result<()> {
    if length > limit {
        return Err(Error::Request(format!(
            "read `{path}`: it has more than the limit of {limit} bytes"
        )));
    }
    Ok(())
}

fn spool(path: &str, source: &std::io::Error) -> Error {
    let below = std::env::temp_dir();
    let told = format!(
        "copy `{}` into a file below `{}`: {source}",
        escape(path),
        below.display()
    );
    Error::Spool(std::io::Error::new(source.kind(), told))
}

pub(in crate::session) fn note_skipped(
    listing: &DirectoryListing,
    limit: u32,
    skipped: &mut Vec<SkippedFile>,
) {
    let named = listing.skipped.iter().take(limit as usize);
    skipped.extend(named.map(|file| SkippedFile {
        path: escape(&file.path),
        reason: escape(&file.reason),
    }));
    let left = listing.total.saturating_sub(listing.files.len() as u64);
    if left > 0 {
        skipped.push(SkippedFile {
            path: String::new(),
            reason: format!("{} beyond the limit of {limit}", counted(left, "more file")),
        });
    }
}

/// Whether nobody is interested in a file.
pub(in crate::session) fn is_ignored(path: &str) -> bool {
    path.split('/').any(|part| IGNORED.contains(&part))
}

/// The path below a root, if every part of it may stand in a path of the host.
pub(in crate::session) fn relative_name<'a>(path: &'a str, root: &str) -> Option<&'a str> {
    let name = path.strip_prefix(root)?.strip_prefix('/')?;
    let safe = |part: &str| {
        !part.is_empty() && part != "." && part != ".." && !part.chars().any(|c| acts(c) || c == '\\')
    };
    (name.len() <= MAX_NAME && name.split('/').all(safe)).then_some(name)
}

/// Takes any text as a path or a reason from a guest, and asserts what holds for whatever is made
/// of it; for fuzzing.
pub fn fuzz_file_name(text: &str) {
    use std::path::{Component, Path};

    for root in ROOTS {
        let Some(name) = relative_name(text, root) else {
            continue;
        };
        let inside = Path::new(name)
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        assert!(inside && !name.is_empty(), "{name:?} leads out of its directory");
        assert!(
            name.len() <= MAX_NAME && !name.chars().any(acts),
            "{name:?} is not a valid name"
        );
        assert_eq!(format!("{root}/{name}"), text, "a name is that of its path");
        assert!(media_type(name).contains('/'));
    }
    let shown = escape(text);
    assert!(!shown.chars().any(acts), "{shown:?} is not escaped");
    assert!(shown.chars().count() <= 1024 * 10, "a shown name has no bound");
}

pub(in crate::session) fn escape(text: &str) -> String {
    text.chars()
        .take(1024)
        .flat_map(|c| {
            if acts(c) {
                c.escape_default().collect::<Vec<_>>()
            } else {
                vec![c]
            }
        })
        .collect()
}

pub(in crate::session) fn media_type(name: &str) -> &'static str {
    match name
        .rsplit('.')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase()
        .as_str()
    {
        "csv" => "text/csv",
        "txt" | "log" | "md" => "text/plain",
        "json" => "application/json",
        "html" => "text/html",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "svg" => "image/svg+xml",
        "pdf" => "application/pdf",
        "parquet" => "application/vnd.apache.parquet",
        "xlsx" => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_could_leave_its_directory_is_rejected() {
        assert_eq!(relative_name("/workspace/a/b.csv", "/workspace"), Some("a/b.csv"));
        for path in [
            "/workspace",
            "/workspace/",
            "/workspace/../x",
            "/workspace/a//b",
            "/etc/passwd",
            "/workspace/a\nb",
        ] {
            assert_eq!(relative_name(path, "/workspace"), None, "{path:?}");
        }
    }

    #[test]
    fn control_characters_of_names_are_escaped() {
        assert_eq!(escape("a\x1b[31m\n"), "a\\u{1b}[31m\\n");
    }
}
