//! The host's folder for what a session's commands leave: files under the names that the sandbox
//! gave them, and nothing outside.
//!
//! The names are hostile, and so may be what an earlier command left here: every folder is entered
//! without following a link, and every file is written beside its place and moved there.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use cellblock_artifact::{ArtifactId, Store};
use cellblock_sandbox::random_bytes;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2, renameat, unlinkat};
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::execution::ProducedFile;
use crate::toolset::ToolEvent;

/// Bytes that tell a picture's kind.
const BEGINNING: u64 = 512;

/// Copies a file from the store into the folder; answers where it is. A refusal of the disk is an
/// `io::Error`.
pub(super) async fn place(
    store: &Store,
    folder: &Path,
    file: &ProducedFile,
) -> Result<std::io::Result<PathBuf>> {
    let id: ArtifactId = file
        .sha256
        .parse()
        .map_err(|_| Error::Request("an artifact has no name".into()))?;
    let mut reader = store.reader(id).await?;
    let mut target = match OutputTarget::open(folder, &file.name) {
        Ok(target) => target,
        Err(error) => return Ok(Err(error)),
    };
    loop {
        match reader.next().await? {
            Some(piece) => {
                if let Err(error) = target.file.write_all(&piece) {
                    return Ok(Err(error));
                }
            }
            None => return Ok(target.finish().map(|()| folder.join(&file.name))),
        }
    }
}

/// The event of a file that is a picture, by its name and by how it begins.
pub(super) async fn visualization(
    store: &Store,
    file: &ProducedFile,
    path: PathBuf,
) -> Result<Option<ToolEvent>> {
    let Some((_, extension)) = file.name.rsplit_once('.') else {
        return Ok(None);
    };
    let media_type = match extension.to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "svg" => "image/svg+xml",
        _ => return Ok(None),
    };
    let id: ArtifactId = file
        .sha256
        .parse()
        .map_err(|_| Error::Request("an artifact has no name".into()))?;
    let beginning = store.get_range(id, 0..file.bytes.min(BEGINNING)).await?;
    Ok(
        begins_as(media_type, &beginning).then(|| ToolEvent::Visualization {
            path,
            sha256: file.sha256.clone(),
            media_type: media_type.to_owned(),
        }),
    )
}

fn begins_as(media_type: &str, beginning: &[u8]) -> bool {
    match media_type {
        "image/png" => beginning.starts_with(b"\x89PNG\r\n\x1a\n"),
        "image/jpeg" => beginning.starts_with(b"\xff\xd8\xff"),
        _ => {
            let text = String::from_utf8_lossy(beginning);
            let text = text.trim_start_matches('\u{feff}').trim_start();
            ["<?xml", "<svg", "<!--", "<!DOCTYPE svg"]
                .iter()
                .any(|start| text.starts_with(start))
        }
    }
}

/// A file on its way to its place. Dropping it unfinished leaves nothing.
#[derive(Debug)]
struct OutputTarget {
    parent: OwnedFd,
    name: String,
    temporary: String,
    file: File,
    finished: bool,
}

impl OutputTarget {
    fn open(folder: &Path, name: &str) -> std::io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut parent = openat(CWD, folder, flags, Mode::empty())?;
        let mut parts: Vec<&str> = name.split('/').collect();
        let last = parts.pop().filter(|last| is_name(last)).ok_or(Errno::INVAL)?;
        for part in parts {
            if !is_name(part) {
                return Err(Errno::INVAL.into());
            }
            match mkdirat(&parent, part, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            parent = enter(&parent, part)?;
        }
        let temporary = format!(".cellblock-{:016x}", unique());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&parent, &temporary, flags, Mode::from_raw_mode(0o644))?;
        Ok(Self {
            parent,
            name: last.to_owned(),
            temporary,
            file: File::from(file),
            finished: false,
        })
    }

    fn finish(mut self) -> std::io::Result<()> {
        // A rename replaces a link, and does not follow it.
        renameat(&self.parent, &self.temporary, &self.parent, &self.name)?;
        self.finished = true;
        Ok(())
    }
}

impl Drop for OutputTarget {
    fn drop(&mut self) {
        if !self.finished {
            let _ = unlinkat(&self.parent, &self.temporary, AtFlags::empty());
        }
    }
}

fn is_name(part: &str) -> bool {
    !matches!(part, "" | "." | "..") && !part.contains(['/', '\0'])
}

fn enter(parent: &OwnedFd, part: &str) -> std::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    loop {
        match openat2(parent.as_fd(), part, flags, Mode::empty(), within) {
            Err(Errno::AGAIN) => {}
            other => return Ok(other?),
        }
    }
}

/// A number that no other file on its way has; that nobody else's file has it either is seen to by `EXCL`.
fn unique() -> u64 {
    u64::from_ne_bytes(random_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, name: &str, content: &[u8]) -> std::io::Result<()> {
        let mut target = OutputTarget::open(folder, name)?;
        target.file.write_all(content)?;
        target.finish()
    }

    #[test]
    fn a_file_is_placed_with_its_folders_and_replaced_whole() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "a/b/c.csv", b"1").unwrap();
        write(folder.path(), "a/b/c.csv", b"2").unwrap();
        assert_eq!(std::fs::read(folder.path().join("a/b/c.csv")).unwrap(), b"2");
        assert_eq!(std::fs::read_dir(folder.path().join("a/b")).unwrap().count(), 1);
    }

    #[test]
    fn no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let bait = elsewhere.path().join("bait");
        std::fs::write(&bait, b"bait").unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), folder.path().join("out")).unwrap();
        std::os::unix::fs::symlink(&bait, folder.path().join("file")).unwrap();
        assert!(write(folder.path(), "out/bait", b"x").is_err());
        write(folder.path(), "file", b"x").unwrap();
        assert_eq!(std::fs::read(&bait).unwrap(), b"bait");
        assert!(!folder.path().join("file").is_symlink());
    }

    #[test]
    fn names_that_lead_out_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["", ".", "..", "../x", "a/../../x", "/x", "a//b"] {
            assert!(write(folder.path(), name, b"x").is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_picture_is_recognized_by_its_first_bytes() {
        assert!(begins_as("image/png", b"\x89PNG\r\n\x1a\n..."));
        assert!(!begins_as("image/png", b"<html>"));
        assert!(begins_as("image/jpeg", b"\xff\xd8\xff\xe0"));
        assert!(begins_as("image/svg+xml", b"\n<svg xmlns=''>"));
        assert!(!begins_as("image/svg+xml", b"<html>"));
    }
}
