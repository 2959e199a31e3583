//! Making a file of the host ready to be mounted in sandboxes, under a name that tells nothing.
//!
//! The mount table of a sandbox names each mounted file's path within its file system. So what is mounted is never the file under its own
//! name, but a hard link, a clone or a copy in a folder of Cellblock's, and that has no name any more either: it is gone when the last
//! sandbox and the session are. A file that others than its owner may not read is not linked, as code in a sandbox is others.

use std::fs::{DirBuilder, File};
use std::io::{Seek, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

use cellblock_sandbox::jail::mounts::file_mount;
use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, flock, linkat, openat, unlinkat};

use crate::workbench::describe::{Format, Shape, describe, to_csv};
use crate::workbench::{DatasetSource, How};

/// Held while a link has a name, so that whoever finds it free may remove every name that is left.
const LOCK: &str = ".lock";
/// Whether others than owner and group may read.
const OTHERS_READ: u32 = 0o004;

/// A file that can be mounted or copied.
#[derive(Clone, Debug)]
pub(crate) struct Spooled {
    pub(crate) file: Arc<File>,
    pub(crate) bytes: u64,
    pub(crate) how: How,
    pub(crate) reason: Option<String>,
    pub(crate) shape: Shape,
}

/// Why a dataset cannot be had.
type Refused = String;

/// Makes a source ready. What it costs does not depend on the file's size, unless the file has to be copied or converted.
pub(crate) fn spool(source: &DatasetSource, folder: &Path) -> Result<Spooled, Refused> {
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
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| format!("make a folder for it: {error}"))?;
    let (file, how, reason) = match source {
        DatasetSource::AsCsv(path) => {
            let converted = convert(&file, Format::of(path), folder)?;
            let reason = "it was converted to CSV".to_owned();
            match file_mount(converted.as_fd()) {
                Ok(_) => (converted, How::Copied, Some(reason)),
                Err(error) => (
                    converted,
                    How::Streamed,
                    Some(format!("{reason}; {}", unmountable(&error))),
                ),
            }
        }
        DatasetSource::File(_) => match file_mount(file.as_fd()) {
            Err(error) => (file, How::Streamed, Some(unmountable(&error))),
            Ok(_) => match link(&file, metadata.mode(), folder) {
                Ok(linked) => (linked, How::Mounted, None),
                Err(reason) => {
                    let (copy, how) = copy(&file, folder)?;
                    (copy, how, Some(reason))
                }
            },
        },
    };
    let bytes = file
        .metadata()
        .map_err(|error| format!("look at it: {error}"))?
        .len();
    let shape = describe(&file, source.format());
    Ok(Spooled {
        file: Arc::new(file),
        bytes,
        how,
        reason,
        shape,
    })
}

fn unmountable(error: &std::io::Error) -> String {
    format!("this process may not mount files ({error})")
}

/// The same file under a name that is gone at once.
fn link(file: &File, mode: u32, folder: &Path) -> Result<File, String> {
    if mode & OTHERS_READ == 0 || has_list(file) {
        return Err("others than its owner may not read it".to_owned());
    }
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::CrossesDevices => "it is on another file system than Cellblock's data".to_owned(),
        _ => format!("it cannot be linked ({error})"),
    };
    let lock = File::create(folder.join(LOCK)).map_err(failed)?;
    let directory = openat(
        CWD,
        folder,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(|error| failed(error.into()))?;
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
        sweep(folder);
    }
    flock(&lock, FlockOperation::LockShared).map_err(|error| failed(error.into()))?;
    let name = tempfile::Builder::new()
        .prefix("")
        .rand_bytes(16)
        .make_in(folder, |path| {
            let own = format!("/proc/self/fd/{}", file.as_raw_fd());
            Ok(linkat(CWD, own, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
        });
    let name = name.map_err(failed)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let path = name.path().file_name().unwrap_or_default();
    let opened = openat(&directory, path, flags, Mode::empty());
    let _ = unlinkat(&directory, path, AtFlags::empty());
    Ok(File::from(opened.map_err(|error| failed(error.into()))?))
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

/// A file without a name that everybody may read.
fn nameless(folder: &Path) -> Result<File, Refused> {
    let made = tempfile::tempfile_in(folder).and_then(|file| {
        file.set_permissions(std::fs::Permissions::from_mode(0o444))?;
        Ok(file)
    });
    made.map_err(|error| format!("make a copy of it: {error}"))
}

fn copy(file: &File, folder: &Path) -> Result<(File, How), Refused> {
    let mut copy = nameless(folder)?;
    if rustix::fs::ioctl_ficlone(&copy, file).is_ok() {
        return Ok((copy, How::Cloned));
    }
    let mut source = file;
    source
        .rewind()
        .and_then(|()| std::io::copy(&mut source, &mut copy))
        .and_then(|_| copy.flush())
        .map_err(|error| format!("copy it: {error}"))?;
    Ok((copy, How::Copied))
}

fn convert(file: &File, format: Format, folder: &Path) -> Result<File, Refused> {
    let mut converted = nameless(folder)?;
    to_csv(file, format, &mut converted).map_err(|error| format!("convert it to CSV: {error}"))?;
    Ok(converted)
}
