//! Making a file of the host ready to be mounted in sandboxes, under a name that tells nothing.
//!
//! The mount table of a sandbox names each mounted file's path within its file system. So what is
//! mounted is never the file under its own name, but a hard link, a clone or a copy in a folder of
//! Cellblock's, which lives as long as the session. A file that others than its owner may not read
//! is not linked, as code in a sandbox is others.

use std::fs::{DirBuilder, File};
use std::io::{Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, FlockOperation, OFlags, flock, linkat};
use tempfile::TempPath;

use crate::session::contents::dataset::{DatasetSource, MountKind};
use crate::session::contents::describe::{DatasetFormat, DatasetShape, describe, to_csv};

/// Lock of the process that has files in the folder; a process that finds it free may remove every
/// remaining file.
const LOCK: &str = ".lock";
/// Whether others than owner and group may read.
const OTHERS_READ: u32 = 0o004;

/// A file that can be mounted or copied.
#[derive(Clone, Debug)]
pub(crate) struct SpooledFile {
    pub(crate) file: Arc<File>,
    entry: Option<Arc<Entry>>,
    pub(crate) bytes: u64,
    pub(crate) how: MountKind,
    pub(crate) reason: Option<String>,
    pub(crate) shape: DatasetShape,
}

/// A dataset of a session.
#[derive(Clone, Debug)]
pub(in crate::session) struct Dataset {
    pub(super) name: String,
    pub(super) spooled: SpooledFile,
}

/// A file in the folder, removed when it is dropped.
#[derive(Debug)]
struct Entry {
    path: TempPath,
    _lock: File,
}

impl SpooledFile {
    /// Under which name it can be mounted, if it can.
    pub(in crate::session) fn path(&self) -> Option<&Path> {
        self.entry.as_ref().map(|entry| &*entry.path)
    }
}

/// The reason why a dataset is unavailable.
type RefusalReason = String;

/// Makes a source ready. What it costs does not depend on the file's size, unless the file has to
/// be copied or converted.
///
/// `mountable` says whether sandboxes can have it mounted at all.
pub(crate) fn spool(
    source: &DatasetSource,
    folder: &Path,
    mountable: bool,
) -> Result<SpooledFile, RefusalReason> {
    // Without NONBLOCK the open of a FIFO would wait for a writer.
    let file = File::options()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(source.path())
        .map_err(|error| format!("open it: {error}"))?;
    let metadata = file.metadata().map_err(|error| format!("look at it: {error}"))?;
    if !metadata.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let (made, how, reason) = match source {
        DatasetSource::AsCsv(path) => {
            let lock = claimed(folder)?;
            let converted = convert(&file, DatasetFormat::of(path), folder)?;
            let how = if mountable {
                MountKind::Copied
            } else {
                MountKind::Streamed
            };
            let reason = "it was converted to CSV".to_owned();
            (Some((converted, lock)), how, Some(reason))
        }
        DatasetSource::File(_) if !mountable => {
            let reason = "nothing can be mounted in sandboxes without mount namespaces".to_owned();
            (None, MountKind::Streamed, Some(reason))
        }
        DatasetSource::File(_) => {
            let lock = claimed(folder)?;
            match link(&file, metadata.mode(), folder) {
                Ok(linked) => (Some((linked, lock)), MountKind::Mounted, None),
                Err(reason) => {
                    let (copy, how) = copy(&file, folder)?;
                    (Some((copy, lock)), how, Some(reason))
                }
            }
        }
    };
    let (file, entry) = match made {
        None => (file, None),
        Some(((file, path), lock)) => {
            let entry = Entry { path, _lock: lock };
            (file, Some(Arc::new(entry)))
        }
    };
    let bytes = file
        .metadata()
        .map_err(|error| format!("look at it: {error}"))?
        .len();
    let shape = describe(&file, source.format());
    Ok(SpooledFile {
        file: Arc::new(file),
        entry,
        bytes,
        how,
        reason,
        shape,
    })
}

/// Makes the folder, removes what processes that are gone have left in it, and keeps others from
/// doing so to what comes now.
pub(crate) fn claim(folder: &Path) -> std::io::Result<File> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let lock = File::create(folder.join(LOCK))?;
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
        sweep(folder);
    }
    flock(&lock, FlockOperation::LockShared)?;
    Ok(lock)
}

fn claimed(folder: &Path) -> Result<File, RefusalReason> {
    claim(folder).map_err(|error| format!("make a folder for it: {error}"))
}

/// The same file under another name.
fn link(file: &File, mode: u32, folder: &Path) -> Result<(File, TempPath), String> {
    // An ordinary user's sandboxes have its own id; those of root have ids that own nothing.
    let others = rustix::process::geteuid().is_root();
    if others && (mode & OTHERS_READ == 0 || has_list(file)) {
        return Err("others than its owner may not read it".to_owned());
    }
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    let linked = tempfile::Builder::new()
        .prefix("")
        .rand_bytes(16)
        .make_in(folder, |path| {
            linkat(CWD, &own, CWD, path, AtFlags::SYMLINK_FOLLOW)?;
            File::options()
                .read(true)
                .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
                .open(path)
        });
    linked
        .map(tempfile::NamedTempFile::into_parts)
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::CrossesDevices => {
                "it is on another file system than Cellblock's data".to_owned()
            }
            _ => format!("it cannot be linked ({})", error.kind()),
        })
}

/// Whether a list of users and groups, which may forbid what the mode allows, is on the file.
fn has_list(file: &File) -> bool {
    let mut nothing = [0_u8; 0];
    rustix::fs::fgetxattr(file, "system.posix_acl_access", &mut nothing[..]).is_ok_and(|bytes| bytes > 0)
}

/// Removes names that a process which was killed has left.
fn sweep(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name() != LOCK {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// A file that everybody may read who is shown it.
fn empty(folder: &Path) -> Result<(File, TempPath), RefusalReason> {
    let made = tempfile::Builder::new()
        .prefix("")
        .rand_bytes(16)
        .tempfile_in(folder)
        .and_then(|made| {
            let made = made.into_parts();
            made.0.set_permissions(std::fs::Permissions::from_mode(0o444))?;
            Ok(made)
        });
    made.map_err(|error| format!("make a copy of it: {}", error.kind()))
}

fn copy(file: &File, folder: &Path) -> Result<((File, TempPath), MountKind), RefusalReason> {
    let mut copy = empty(folder)?;
    if rustix::fs::ioctl_ficlone(&copy.0, file).is_ok() {
        return Ok((copy, MountKind::Cloned));
    }
    let mut source = file;
    source
        .rewind()
        .and_then(|()| std::io::copy(&mut source, &mut copy.0))
        .and_then(|_| copy.0.flush())
        .map_err(|error| format!("copy it: {}", error.kind()))?;
    Ok((copy, MountKind::Copied))
}

fn convert(file: &File, format: DatasetFormat, folder: &Path) -> Result<(File, TempPath), RefusalReason> {
    let mut converted = empty(folder)?;
    to_csv(file, format, &mut converted.0).map_err(|error| format!("convert it to CSV: {error}"))?;
    Ok(converted)
}
