//! The files of a machine: its read-only disk, and the first file tree of its kernel.
//!
//! The disk holds the image, the `cellblock` executable, and as much of the host's system as both and
//! usual shell commands need.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use cellblock_image::find_library;

use super::boot::{IMAGE, MODULES, PROGRAM, ROOT, WORDS};
use super::cpio::Archive;
use super::kernel::Kernel;
use super::libraries;
use crate::WallConfig;

/// Commands of the host that code in a machine can run, where the host has them.
const COMMANDS: &str = "sh bash dash [ arch awk b2sum base32 base64 basename bunzip2 bzip2 cat chmod \
                        chown cmp comm cp csplit cut date dd df diff dirname du echo egrep env expand \
                        expr factor false fgrep file find fmt fold free getconf grep gunzip gzip head \
                        hostname id join kill ldd less link ln locale ls mawk md5sum mkdir mkfifo mktemp \
                        more mv nice nl node nohup nproc numfmt od paste patch pgrep pkill printenv \
                        printf ps pwd readlink realpath rev rm rmdir sed seq sha1sum sha256sum sha512sum \
                        shuf sleep sort split stat stdbuf strings stty sum sync tac tail tar tee test \
                        timeout top touch tr true truncate tsort tty uname unexpand uniq unlink unxz \
                        unzip uptime users vdir wc which who whoami xargs xz yes zcat zip zstd";
const FOLDERS: [&str; 2] = ["/usr/bin", "/bin"];
/// Directories of the disk.
const DIRECTORIES: [&str; 19] = [
    "dev",
    "etc/fonts",
    "etc/alternatives",
    "home/user",
    "mnt",
    "opt/cellblock",
    "opt/image",
    "opt/layers",
    "opt/python",
    "proc",
    "run",
    "sys",
    "tmp",
    "usr/bin",
    "usr/lib",
    "usr/lib64",
    "usr/sbin",
    "usr/share/zoneinfo",
    "workspace",
];
const LINKS: [(&str, &str); 4] = [
    ("bin", "usr/bin"),
    ("lib", "usr/lib"),
    ("lib64", "usr/lib64"),
    ("sbin", "usr/sbin"),
];
/// Folders of the host that are on the disk where they exist: time zones, and modules that Debian's
/// Node.js reads.
const SHARED: [&str; 2] = ["/usr/share/zoneinfo", "/usr/share/nodejs"];
/// Programs that make file systems, which are not on every user's PATH.
const MAKERS: [&str; 4] = [
    "/usr/sbin/mke2fs",
    "/sbin/mke2fs",
    "/usr/bin/mke2fs",
    "/usr/local/sbin/mke2fs",
];
/// Room for the file system's own structures.
const SPARE: u64 = 64 << 20;
const INODE: u64 = 4096;

/// Writes the disk to `target`. `staging` must be on the image's file system, whose files are
/// linked and not copied.
pub(super) fn write_disk(target: &Path, staging: &Path, config: &WallConfig) -> io::Result<()> {
    let written = write_tree(staging, config).and_then(|()| make(target, staging));
    let removed = fs::remove_dir_all(staging);
    written.and(removed)
}

fn write_tree(root: &Path, config: &WallConfig) -> io::Result<()> {
    for directory in DIRECTORIES {
        fs::create_dir_all(root.join(directory))?;
    }
    for (name, target) in LINKS {
        symlink(target, root.join(name))?;
    }
    for (name, text) in cellblock_jail::mounts::system_files() {
        fs::write(root.join("etc").join(name), text)?;
    }
    let commands: Vec<_> = COMMANDS
        .split_whitespace()
        .filter_map(|name| {
            FOLDERS
                .iter()
                .map(|it| Path::new(it).join(name))
                .find(|it| it.is_file())
        })
        .collect();
    for command in &commands {
        if let Some(name) = command.file_name() {
            fs::copy(command, root.join("usr/bin").join(name))?;
        }
    }
    let names = &config.image.manifest().system_libraries;
    let found = |name: &String| find_library(std::env::consts::ARCH, name);
    let mut files: Vec<_> = names.iter().filter_map(found).collect();
    let mut found: BTreeSet<_> = files.iter().cloned().collect();
    files.extend(commands);
    files.push(config.executable.clone());
    found.extend(libraries::needed(&files)?);
    for library in found {
        let inside = root.join(merged(&library));
        if let Some(above) = inside.parent() {
            fs::create_dir_all(above)?;
        }
        fs::copy(&library, inside)?;
    }
    let program = root.join(PROGRAM.trim_start_matches('/'));
    fs::write(&program, libraries::stripped(&config.executable)?)?;
    fs::set_permissions(&program, fs::metadata(&config.executable)?.permissions())?;
    for folder in SHARED.iter().filter(|folder| Path::new(folder).is_dir()) {
        copy_tree(
            Path::new(folder),
            &root.join(folder.trim_start_matches('/')),
            false,
        )?;
    }
    copy_tree(
        config.image.root(),
        &root.join(IMAGE.trim_start_matches('/')),
        true,
    )
}

/// Returns the path of a library below the root, whose `/lib` is a link to `/usr/lib`.
fn merged(path: &Path) -> PathBuf {
    let path = path.strip_prefix("/").unwrap_or(path);
    if path.starts_with("usr") || path.starts_with("opt") {
        path.to_owned()
    } else {
        Path::new("usr").join(path)
    }
}

/// Copies a tree; links its files if possible and wanted.
fn copy_tree(source: &Path, target: &Path, link: bool) -> io::Result<()> {
    fs::create_dir_all(target)?;
    for entry in fs::read_dir(source)? {
        let entry = entry?;
        let (from, to) = (entry.path(), target.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_tree(&from, &to, link)?;
        } else if kind.is_symlink() {
            symlink(fs::read_link(&from)?, &to)?;
        } else if kind.is_file() && !(link && fs::hard_link(&from, &to).is_ok()) {
            fs::copy(&from, &to)?;
        }
    }
    Ok(())
}

fn size(path: &Path) -> io::Result<(u64, u64)> {
    let (mut bytes, mut files) = (INODE, 1);
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if metadata.is_dir() {
            let (below, count) = size(&entry.path())?;
            bytes += below;
            files += count;
        } else {
            bytes += metadata.len().next_multiple_of(INODE);
            files += 1;
        }
    }
    Ok((bytes, files))
}

fn make(target: &Path, root: &Path) -> io::Result<()> {
    let maker = MAKERS
        .iter()
        .find(|path| Path::new(path).is_file())
        .ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::NotFound,
                "`mke2fs` is not installed; on Debian and Ubuntu: apt-get install e2fsprogs",
            )
        })?;
    let (bytes, files) = size(root)?;
    let (inodes, kib) = (files + files / 8 + 64, (bytes + bytes / 16 + SPARE) / 1024);
    let output = Command::new(maker)
        .args([
            "-q",
            "-F",
            "-t",
            "ext4",
            "-b",
            "4096",
            "-m",
            "0",
            "-O",
            "^has_journal",
            "-E",
            "root_owner=0:0",
        ])
        .args(["-N", &inodes.to_string(), "-d"])
        .arg(root)
        .arg(target)
        .arg(format!("{kib}k"))
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(io::Error::other(format!(
        "`{maker}` failed with {}: {words}",
        output.status
    )))
}

/// Returns the first file tree of the machine's kernel, whose program mounts the disk.
pub(super) fn first_tree(
    config: &WallConfig,
    kernel: &Kernel,
    modules: &[&str],
    words: &[String],
) -> io::Result<Vec<u8>> {
    let mut archive = Archive::default();
    for directory in ["dev", "proc", "sys", ROOT, MODULES] {
        archive.directory(directory);
    }
    archive.device("dev/console", (5, 1));
    archive.device("dev/null", (1, 3));
    archive.file(PROGRAM, &libraries::stripped(&config.executable)?);
    for library in libraries::needed(std::slice::from_ref(&config.executable))? {
        archive.file(&library.to_string_lossy(), &fs::read(&library)?);
    }
    for (at, module) in kernel.modules(modules).iter().enumerate() {
        let name = module.file_name().unwrap_or_default().to_string_lossy();
        archive.file(&format!("{MODULES}/{at:02}-{name}"), &fs::read(module)?);
    }
    archive.file(WORDS, &serde_json::to_vec(words)?);
    Ok(archive.finish())
}
