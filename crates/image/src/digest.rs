//! The content address of a directory tree.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use sha2::{Digest as _, Sha256};

use super::error::{ImageError, IoResultExt, Result};

/// Content of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tree {
    /// sha256 over path, mode, size and sha256 of every entry, ordered by path.
    pub(crate) id: String,
    /// Total size of its files in bytes.
    pub(crate) size: u64,
    /// Number of files.
    pub(crate) files: u64,
}

/// A file or link of a tree: its path relative to the root, its line and its size.
pub(crate) type TreeEntry = (PathBuf, String, u64);

/// Reads the whole tree below `root` and computes its address. Owners, times and the order on disk
/// do not matter.
pub(crate) fn of(root: &Path) -> Result<Tree> {
    entries(root, |_| true).map(Tree::of_entries)
}

/// Reads the files and links below `root` whose paths are wanted, in any order.
pub(crate) fn entries(root: &Path, is_wanted: impl Fn(&Path) -> bool) -> Result<Vec<TreeEntry>> {
    let mut paths = Vec::new();
    walk(root, &mut |path, _| {
        if is_wanted(path) {
            paths.push(path.to_owned());
        }
        Ok(())
    })?;
    let paths = &paths;
    let next = AtomicUsize::new(0);
    let hash_some = || -> Result<Vec<TreeEntry>> {
        let mut done = Vec::new();
        while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (line, size) = entry_line(path)?;
            let relative = path.strip_prefix(root).unwrap_or(path);
            done.push((relative.to_owned(), line, size));
        }
        Ok(done)
    };
    let workers = thread::available_parallelism().map_or(1, |it| it.get().min(8));
    thread::scope(|scope| {
        // This thread works, too: if no other can be started, it does everything.
        let running: Vec<_> = (1..workers)
            .map_while(|_| thread::Builder::new().spawn_scoped(scope, hash_some).ok())
            .collect();
        let mut entries = hash_some()?;
        for worker in running {
            entries.extend(worker.join().map_err(|_| ImageError::Cancelled)??);
        }
        Ok(entries)
    })
}

impl Tree {
    /// Addresses files and links, which may be in any order.
    pub(crate) fn of_entries(mut entries: Vec<TreeEntry>) -> Self {
        entries.sort();
        let mut all = Sha256::new();
        for (path, line, _) in &entries {
            all.update(path.as_os_str().as_bytes());
            all.update(b"\0");
            all.update(line);
            all.update(b"\n");
        }
        Self {
            id: hex(&all.finalize()),
            size: entries.iter().map(|it| it.2).sum(),
            files: entries.len() as u64,
        }
    }
}

/// Returns the line of a link, which depends on its target alone.
pub(crate) fn link_line(target: &[u8]) -> String {
    format!("link {}", hex(&Sha256::digest(target)))
}

/// Returns the line of a file with this size and hash.
pub(crate) fn file_line(executable: bool, size: u64, sha256: &str) -> String {
    let kind = if executable { "program" } else { "file" };
    format!("{kind} {size} {sha256}")
}

/// Returns the line and the size of the file or link at a path.
pub(crate) fn entry_line(path: &Path) -> Result<(String, u64)> {
    let found = fs::symlink_metadata(path).at("look at", path)?;
    if found.is_symlink() {
        let target = fs::read_link(path).at("read the link", path)?;
        return Ok((link_line(target.as_os_str().as_bytes()), 0));
    }
    let executable = found.permissions().mode() & 0o111 != 0;
    Ok((file_line(executable, found.len(), &of_file(path)?), found.len()))
}

/// Returns the sha256 of a file in hexadecimal.
pub(crate) fn of_file(path: &Path) -> Result<String> {
    let mut file = File::open(path).at("open", path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 18];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(hex(&hasher.finalize())),
            Ok(read) => hasher.update(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error).at("read", path),
        }
    }
}

/// Visits every file and link below `root`, not following links.
pub(crate) fn walk(root: &Path, visit: &mut dyn FnMut(&Path, fs::FileType) -> Result<()>) -> Result<()> {
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).at("list", &dir)? {
            let entry = entry.at("list", &dir)?;
            let kind = entry.file_type().at("look at", &entry.path())?;
            if kind.is_dir() {
                open.push(entry.path());
            } else {
                visit(&entry.path(), kind)?;
            }
        }
    }
    Ok(())
}

/// Hashes what is read through it.
#[derive(Debug)]
pub(crate) struct HashingReader<R> {
    inner: R,
    hasher: Sha256,
}

impl<R: Read> HashingReader<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self {
            inner,
            hasher: Sha256::new(),
        }
    }

    /// Reads to the end and returns the sha256 of everything in hexadecimal.
    pub(crate) fn finish(mut self) -> io::Result<String> {
        io::copy(&mut self, &mut io::sink())?;
        Ok(hex(&self.hasher.finalize()))
    }
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..read]);
        Ok(read)
    }
}

/// Formats bytes in lowercase hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("a")).unwrap();
        fs::write(dir.path().join("a/one"), "1").unwrap();
        fs::write(dir.path().join("two"), "22").unwrap();
        std::os::unix::fs::symlink("two", dir.path().join("link")).unwrap();
        dir
    }

    #[test]
    fn equal_trees_have_equal_addresses() {
        let (one, other) = (tree(), tree());
        assert_eq!(of(one.path()).unwrap(), of(other.path()).unwrap());
        assert_eq!(of(one.path()).unwrap().size, 3);
        assert_eq!(of(one.path()).unwrap().files, 3);
    }

    #[test]
    fn every_change_changes_the_address() {
        let before = of(tree().path()).unwrap().id;
        let changes: [fn(&Path); 5] = [
            |it| fs::write(it.join("two"), "2x").unwrap(),
            |it| fs::rename(it.join("two"), it.join("three")).unwrap(),
            |it| fs::set_permissions(it.join("two"), fs::Permissions::from_mode(0o755)).unwrap(),
            |it| fs::write(it.join("a/new"), "").unwrap(),
            |it| {
                fs::remove_file(it.join("link")).unwrap();
                std::os::unix::fs::symlink("a/one", it.join("link")).unwrap();
            },
        ];
        for (at, change) in changes.iter().enumerate() {
            let dir = tree();
            change(dir.path());
            assert_ne!(of(dir.path()).unwrap().id, before, "change {at}");
        }
    }
}
