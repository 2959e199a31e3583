//! An image's root filesystem as the tree of a keep: read-only, with the sandbox's own file systems over it.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::mount::{MountFlags, MoveMountFlags, OpenTreeFlags, move_mount, open_tree};

use super::{SMALL, create_dir, set_attributes, tmpfs};
use crate::error::{Result, SyscallResult};

/// Directories with the tree's own files, which become read-only once they are written.
pub(super) const FROZEN: [&str; 3] = ["dev", "opt/cellblock", "sys"];
/// Directories that the tree and its rooms mount something over.
const COVERED: [&str; 7] = [
    "dev",
    "opt/cellblock",
    "opt/layers",
    "proc",
    "sys",
    "tmp",
    "workspace",
];
/// Files of `/etc` that are the sandbox's, not the image's.
const FILES: [&str; 4] = ["passwd", "group", "hosts", "nsswitch.conf"];
/// Path to which these are written.
pub(super) const ETC: &str = "opt/cellblock/etc";

/// Mounts the image at `root`, and memory over its directories for the tree's own files.
pub(super) fn mount(root: &Path, image: OwnedFd) -> Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // A link would lead out of the image, because the tree is not the root yet.
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    for place in COVERED.iter().chain(&["etc"]) {
        openat2(&image, *place, flags, Mode::empty(), resolve)
            .during_on("open in the image's root", *place)?;
    }
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    move_mount(image, "", CWD, root, flags).during_on("mount", root)?;
    for place in FROZEN {
        tmpfs(&root.join(place), SMALL, MountFlags::NOSUID)?;
    }
    create_dir(&root.join("dev/pts"))?;
    create_dir(&root.join("dev/shm"))
}

/// Mounts the sandbox's files of `/etc` over those of the image.
pub(super) fn show_files(root: &Path) -> Result<()> {
    for name in FILES {
        let source = root.join(ETC).join(name);
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let file = open_tree(CWD, &source, flags).during_on("open", &source)?;
        set_attributes(file.as_fd()).during_on("make read-only", &source)?;
        let target = root.join("etc").join(name);
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let over = openat(CWD, &target, flags, Mode::empty()).during_on("open", &target)?;
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        move_mount(&file, "", &over, "", flags).during_on("mount", &target)?;
    }
    Ok(())
}
