//! Saving a volume: what its folder has becomes a revision, unless it exceeds a limit.

use std::collections::{BTreeMap, HashSet};

use cellblock_artifact::{ArtifactDescription, Kind, Store};
use cellblock_protocol::FileEntry;
use cellblock_sandbox::guest::{DirectoryListing, Guest};

use super::open::OpenVolume;
use crate::error::Error;
use crate::session::contents::files::{download, escape, media_type, relative_name};
use crate::volume::{VOLUME_FOLDER, VolumeFile, VolumeKeeper, VolumeManifest};

/// Permission bits that every file has, so that it can be written into the next sandbox.
const LEAST_MODE: u32 = 0o600;
/// Entries that a listing names as skipped at most. Beyond them, it does not say what it left out.
const MAX_SKIPPED: usize = 100;
/// Skipped entries that a note names.
const NAMED: usize = 5;

/// Reason that a file cannot become part of a revision.
enum ReadFailure {
    /// It has been removed since it was listed.
    Gone,
    /// This file is left out, with a reason.
    Skipped(String),
    /// The revision is not saved.
    Failed(String),
}

impl OpenVolume {
    /// Saves what is new; returns a note about what was skipped. An error says why nothing was saved.
    pub(super) async fn save(
        &mut self,
        guest: &Guest,
        store: &Store,
        keeper: &dyn VolumeKeeper,
    ) -> Result<Option<String>, String> {
        let max_files = self.volume.max_files;
        // By the time of their inodes: code can set any other time.
        let changed = list(guest, Some(self.stamp), max_files).await?;
        let listing = list(guest, None, max_files).await?;
        self.check(&listing)?;
        let stamp = changed.stamp;
        let changed: HashSet<_> = changed.files.into_iter().map(|file| file.path).collect();
        let mut skipped: Vec<(String, String)> = listing
            .skipped
            .iter()
            .map(|it| (it.path.clone(), it.reason.clone()))
            .collect();
        let mut files = BTreeMap::new();
        let mut left = self.volume.max_bytes;
        for entry in &listing.files {
            let name = match name(entry, &files) {
                Ok(name) => name,
                Err(reason) => {
                    skipped.push((entry.path.clone(), reason));
                    continue;
                }
            };
            let state = (entry.size, entry.mtime_ns, entry.mode);
            let saved = self.volume.manifest.0.get(name);
            let same = !changed.contains(&entry.path) && self.seen.get(&entry.path) == Some(&state);
            let file = match saved {
                Some(saved) if same => saved.clone(),
                _ => match take(guest, store, entry, left).await {
                    Ok(file) => file,
                    Err(ReadFailure::Gone) => continue,
                    Err(ReadFailure::Skipped(reason)) => {
                        skipped.push((entry.path.clone(), reason));
                        continue;
                    }
                    Err(ReadFailure::Failed(reason)) => return Err(reason),
                },
            };
            left = left.saturating_sub(file.bytes);
            files.insert(name.to_owned(), file);
        }
        let kept = self.unseen(&skipped, &files);
        files.extend(kept);
        let next = VolumeManifest(files);
        self.check_size(next.bytes(), next.0.len() as u64)?;
        if next != self.volume.manifest {
            self.volume.revision = keeper.save(&self.volume.manifest, &next).await?;
            self.volume.manifest = next;
        }
        self.note(&listing);
        // The earlier one: a file may have changed between the two.
        self.stamp = stamp;
        Ok(self.told(&skipped))
    }

    /// Rejects what exceeds a limit before any of it is read.
    fn check(&self, listing: &DirectoryListing) -> Result<(), String> {
        let sizes = listing.files.iter().map(|file| file.size);
        let bytes = sizes.fold(0_u64, u64::saturating_add);
        self.check_size(bytes, listing.total.max(listing.files.len() as u64))
    }

    fn check_size(&self, bytes: u64, files: u64) -> Result<(), String> {
        let (max_bytes, max_files) = (self.volume.max_bytes, self.volume.max_files);
        let (has, key, limit) = if files > u64::from(max_files) {
            (format!("{files} files"), "max_files", u64::from(max_files))
        } else if bytes > max_bytes {
            (format!("{bytes} bytes"), "max_bytes", max_bytes)
        } else {
            return Ok(());
        };
        Err(format!(
            "{VOLUME_FOLDER} has {has}, the limit `volumes.{key}` is {limit}; remove files there, or ask \
             the operator for a higher limit"
        ))
    }

    /// Returns files of the last revision about which the listing says nothing, because it skipped
    /// them or a folder above them.
    fn unseen(
        &self,
        skipped: &[(String, String)],
        files: &BTreeMap<String, VolumeFile>,
    ) -> BTreeMap<String, VolumeFile> {
        let blind = skipped.len() >= MAX_SKIPPED;
        let hidden = |name: &str| {
            let path = format!("{VOLUME_FOLDER}/{name}");
            blind
                || skipped.iter().any(|(at, _)| {
                    path.strip_prefix(at.as_str())
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                })
        };
        let last = self.volume.manifest.0.iter();
        last.filter(|(name, _)| hidden(name))
            .filter(|(name, _)| is_free(name, files))
            .map(|(name, file)| (name.clone(), file.clone()))
            .collect()
    }

    /// Returns the note about what was skipped.
    fn told(&self, skipped: &[(String, String)]) -> Option<String> {
        if skipped.is_empty() {
            return None;
        }
        let named = skipped.iter().take(NAMED);
        let mut named: Vec<_> = named
            .map(|(path, reason)| format!("`{}` ({})", escape(path), escape(reason)))
            .collect();
        if skipped.len() > NAMED {
            named.push(format!("{} more", skipped.len() - NAMED));
        }
        Some(format!(
            "the volume `{}` does not save {}",
            self.volume.name,
            named.join(", ")
        ))
    }
}

/// Returns the path below the folder, if the file may have it.
fn name<'a>(entry: &'a FileEntry, files: &BTreeMap<String, VolumeFile>) -> Result<&'a str, String> {
    let name = relative_name(&entry.path, VOLUME_FOLDER).ok_or(
        "its name cannot be used outside the sandbox; use at most 512 bytes without control characters \
         and `\\`",
    )?;
    // Only a guest that lies lists such a file.
    is_free(name, files)
        .then_some(name)
        .ok_or_else(|| "another file has the same path".to_owned())
}

/// Whether a path is none of these files, no folder of them and not below one of them.
fn is_free(name: &str, files: &BTreeMap<String, VolumeFile>) -> bool {
    let below = format!("{name}/");
    let is_folder = files
        .range(below.clone()..)
        .next()
        .is_some_and(|(it, _)| it.starts_with(&below));
    let mut folders = name.match_indices('/').map(|(end, _)| &name[..end]);
    !files.contains_key(name) && !is_folder && !folders.any(|folder| files.contains_key(folder))
}

/// Lists the folder. Code may have removed it, with all files.
async fn list(guest: &Guest, since: Option<u64>, most: u32) -> Result<DirectoryListing, String> {
    match guest.list(VOLUME_FOLDER, since, most).await {
        Ok(listing) => Ok(listing),
        Err(error) => match error.guest_refusal() {
            Some(("not_found", _)) => Ok(DirectoryListing::default()),
            Some((_, reason)) => Err(format!("{VOLUME_FOLDER} cannot be listed: {}", escape(reason))),
            None => Err(unanswered(&error)),
        },
    }
}

/// Stores the contents of a file.
async fn take(guest: &Guest, store: &Store, entry: &FileEntry, left: u64) -> Result<VolumeFile, ReadFailure> {
    let (content, bytes) = match download(guest, &entry.path, left).await {
        Ok(read) => read,
        Err(Error::Request(_)) => {
            let path = escape(&entry.path);
            return Err(ReadFailure::Failed(format!(
                "`{path}` grew beyond the limit `volumes.max_bytes` while it was read; write it before \
                 the cell ends"
            )));
        }
        Err(error) => {
            return Err(match error.refusal() {
                Some(("not_found", _)) => ReadFailure::Gone,
                Some((_, reason)) => ReadFailure::Skipped(reason.to_owned()),
                None => ReadFailure::Failed(unanswered(&error)),
            });
        }
    };
    let about = ArtifactDescription {
        kind: Kind::File,
        media_type: media_type(&entry.path).to_owned(),
        origin: None,
    };
    let sha256 = store.put_file(content, &about).await.map_err(|error| {
        tracing::error!(
            error = &error as &dyn std::error::Error,
            "store a file of a volume"
        );
        ReadFailure::Failed("the server could not store a file; its log has the reason".to_owned())
    })?;
    Ok(VolumeFile {
        mode: (entry.mode & 0o777) | LEAST_MODE,
        bytes,
        sha256,
    })
}

fn unanswered(error: &(dyn std::error::Error + 'static)) -> String {
    tracing::info!(error, "a sandbox does not list its volume");
    "the sandbox does not answer".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(path: &str) -> FileEntry {
        FileEntry {
            path: path.to_owned(),
            size: 0,
            mtime_ns: 0,
            mode: 0o644,
        }
    }

    #[test]
    fn paths_that_lead_out_or_collide_are_rejected() {
        let file = VolumeFile {
            mode: 0o644,
            bytes: 0,
            sha256: cellblock_artifact::ArtifactId::of(b""),
        };
        let files = BTreeMap::from([("a/b".to_owned(), file.clone()), ("c".to_owned(), file)]);
        for (path, expected) in [
            ("/workspace/volume/d", Some("d")),
            ("/workspace/volume/a/c", Some("a/c")),
            ("/workspace/volume/C", Some("C")),
            ("/workspace/volume/a.b", Some("a.b")),
            ("/workspace/volume/a", None),
            ("/workspace/volume/a/b", None),
            ("/workspace/volume/a/b/c", None),
            ("/workspace/volume/c/d", None),
            ("/workspace/volume/../x", None),
            ("/workspace/volume//etc/passwd", None),
            ("/workspace/volumes/x", None),
            ("/etc/passwd", None),
            ("", None),
        ] {
            assert_eq!(name(&listed(path), &files).ok(), expected, "{path:?}");
        }
        let long = format!("/workspace/volume/{}", "x".repeat(513));
        assert!(name(&listed(&long), &files).is_err());
    }
}
