//! Copying a root filesystem from a folder of this machine, as another tool has unpacked or made it.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::beneath::RootDirectory;
use super::{Limits, Tally};
use crate::error::IoResultExt as _;
use crate::error::invalid;
use crate::{Result, Sink, stop};

/// Copies everything below a folder, except for what is mounted there, and what is neither file,
/// folder nor link.
pub(super) fn copy(
    from: &Path,
    root: &mut RootDirectory,
    tally: &mut Tally,
    limits: &Limits,
    sink: &Sink,
) -> Result<()> {
    let origin = from.to_string_lossy();
    let device = fs::metadata(from).at("look at", from)?.dev();
    // Second names of a file stay that.
    let mut names: HashMap<u64, PathBuf> = HashMap::new();
    let mut open = vec![PathBuf::new()];
    while let Some(folder) = open.pop() {
        let here = from.join(&folder);
        for entry in fs::read_dir(&here).at("list", &here)? {
            stop::check()?;
            let entry = entry.at("list", &here)?;
            let (here, path) = (entry.path(), folder.join(entry.file_name()));
            let found = fs::symlink_metadata(&here).at("look at", &here)?;
            tally.entries += 1;
            tally.bytes = tally
                .bytes
                .saturating_add(if found.is_file() { found.len() } else { 0 });
            if tally.entries > limits.entries || tally.bytes > limits.bytes {
                let problem = format!(
                    "it has more than {} files or {} bytes",
                    limits.entries, limits.bytes
                );
                return Err(invalid(&origin, problem));
            }
            if found.dev() != device {
                tally.skipped += 1;
            } else if found.is_dir() {
                root.make_folder(&path).at("create", &path)?;
                open.push(path);
            } else if found.is_symlink() {
                let target = fs::read_link(&here).at("read the link", &here)?;
                root.link(&path, target.as_os_str()).at("link", &path)?;
            } else if !found.is_file() {
                tally.skipped += 1;
            } else if let Some(first) = names.get(&found.ino()) {
                root.hard_link(&path, first).at("link", &path)?;
            } else {
                copy_file(&here, root, &path, &found)?;
                if found.nlink() > 1 {
                    names.insert(found.ino(), path);
                }
                sink.bytes(tally.bytes, tally.bytes);
            }
        }
    }
    Ok(())
}

fn copy_file(here: &Path, root: &mut RootDirectory, path: &Path, found: &fs::Metadata) -> Result<()> {
    // Another process could have put a link in its place.
    let flags = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    let mut source = fs::File::options()
        .read(true)
        .custom_flags(flags)
        .open(here)
        .at("read", here)?;
    let executable = found.permissions().mode() & 0o111 != 0;
    let mut target = root.create(path, executable).at("create", path)?;
    // Clones the file where the filesystem can.
    io::copy(&mut source, &mut target).at("copy", here).map(drop)
}
