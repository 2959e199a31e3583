//! Mount points that a root filesystem needs so that a sandbox can mount its own file systems over it.

use std::fs;
use std::io;
use std::path::Path;

use rustix::fs::FileType;

use super::beneath::RootDirectory;

/// Folders over which a sandbox mounts its own.
const FOLDERS: [&str; 10] = [
    "dev",
    "etc",
    "mnt",
    "opt/cellblock",
    "opt/layers",
    "proc",
    "run",
    "sys",
    "tmp",
    "workspace",
];
/// Files that a sandbox replaces: its users, and names of the network that it does not have.
const FILES: [&str; 4] = ["etc/passwd", "etc/group", "etc/hosts", "etc/nsswitch.conf"];
/// Links that every sandbox has.
const LINKS: [(&str, &str); 3] = [
    ("cellblock", "/tmp/data/.cellblock"),
    ("mnt/data", "/workspace"),
    ("skills", "/tmp/data/.skills"),
];
/// Folders whose files are memory or a kernel's in every sandbox; what an image has in them is never seen.
const EMPTY: [&str; 7] = [
    "dev",
    "proc",
    "sys",
    "tmp",
    "workspace",
    "opt/cellblock",
    "opt/layers",
];

/// Makes them; what is in the way is removed.
pub(super) fn make(root: &mut RootDirectory) -> io::Result<()> {
    // A link of the image could lead one of these to another folder.
    for folder in ["etc", "mnt", "opt"] {
        root.make_folder(Path::new(folder))?;
    }
    for folder in EMPTY {
        root.remove(Path::new(folder))?;
    }
    for folder in FOLDERS {
        root.make_folder(Path::new(folder))?;
    }
    // A link of the image stays, and then a sandbox has nothing of its own there.
    let home = Path::new("home/user");
    if matches!(root.kind(Path::new("home"))?, None | Some(FileType::Directory)) && root.kind(home)?.is_none()
    {
        root.make_folder(home)?;
    }
    for file in FILES {
        let path = Path::new(file);
        if root.kind(path)? != Some(FileType::RegularFile) {
            root.create(path, false)?;
        }
    }
    for (link, target) in LINKS {
        root.link(Path::new(link), target.as_ref())?;
    }
    Ok(())
}

/// Returns what is wrong if they are not what they must be.
pub(crate) fn check_mount_points(tree: &Path) -> Result<(), String> {
    let is = |path: &str, fits: fn(&fs::FileType) -> bool| {
        fs::symlink_metadata(tree.join(path)).is_ok_and(|it| fits(&it.file_type()))
    };
    let folders = ["etc", "mnt", "opt"].into_iter().chain(FOLDERS);
    let wrong = folders
        .filter(|it| !is(it, fs::FileType::is_dir))
        .chain(FILES.into_iter().filter(|it| !is(it, fs::FileType::is_file)))
        .chain(
            LINKS
                .into_iter()
                .filter(|it| !is(it.0, fs::FileType::is_symlink))
                .map(|it| it.0),
        )
        .next();
    match wrong {
        None => Ok(()),
        Some(path) => Err(format!(
            "its root lacks `/{path}`, where sandboxes mount their own files"
        )),
    }
}
