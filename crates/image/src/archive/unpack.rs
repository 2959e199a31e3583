//! Unpacking an archive's members into a folder, hashed as they are written.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{OpenOptionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use tar::{Entry, EntryType};

use super::{LOCK, MANIFEST, stays_inside};
use crate::digest::{Tree, TreeEntry, file_line, hex, link_line};
use crate::error::IoResultExt as _;
use crate::error::invalid;
use crate::{ImageError, Manifest, Result, Sink, build};
use crate::{oci, stop};

/// Maximum size of `manifest.json` and of `requirements.lock` in bytes.
pub(super) const MAX_TEXT: u64 = 4 << 20;
/// Maximum length of a member's name in bytes, which is that of a path.
const MAX_NAME: u64 = 4096;
/// Files up to this size in bytes are written by other threads while the archive is read on.
const SMALL: u64 = 1 << 20;
/// Maximum number of folders; a root filesystem's address does not cover those with nothing in them.
const MAX_FOLDERS: usize = 1_000_000;
/// Small files that wait for a thread to write them.
const WAITING: usize = 64;

/// A small file that was read and is to be written.
struct SmallFile {
    relative: PathBuf,
    executable: bool,
    bytes: Vec<u8>,
}

/// Unpacks the rest of an archive into `staging/image` and compares it with the manifest.
pub(super) fn unpack<R: Read>(
    entries: tar::Entries<'_, R>,
    staging: &Path,
    manifest: &Manifest,
    origin: &str,
    sink: &Sink,
) -> Result<()> {
    let image = staging.join("image");
    let tree = image.join(manifest.tree());
    fs::create_dir_all(&tree).at("create", &tree)?;
    let (sender, receiver) = sync_channel::<SmallFile>(WAITING);
    let receiver = Mutex::new(receiver);
    let workers = thread::available_parallelism().map_or(1, |it| it.get().min(8));
    let (read, written) = thread::scope(|scope| {
        let running: Vec<_> = (0..workers)
            .map_while(|_| {
                thread::Builder::new()
                    .spawn_scoped(scope, || write_small(&tree, &receiver))
                    .ok()
            })
            .collect();
        let mut reader = ArchiveReader {
            image: &image,
            tree: &tree,
            manifest,
            origin,
            sink,
            // Without a thread to write them, every file is written as it is read.
            small: (!running.is_empty()).then_some(sender),
            folders: HashSet::new(),
            links: Vec::new(),
            digest: Vec::new(),
            bytes: 0,
        };
        let read = reader.read_all(entries);
        // The threads end with what they still have to write.
        reader.small = None;
        let written: Result<Vec<_>> = running
            .into_iter()
            .map(|worker| worker.join().map_err(|_| ImageError::Cancelled).flatten())
            .collect();
        (read.map(|()| (reader.links, reader.digest)), written)
    });
    // A thread that failed closed its end, so that its error is the cause of the reader's.
    let (written, (links, mut digest)) = (written?, read?);
    digest.extend(written.into_iter().flatten());
    for (relative, target) in links {
        let path = tree.join(&relative);
        symlink(&target, &path).at("link", &path)?;
        digest.push((relative, link_line(target.as_os_str().as_bytes()), 0));
    }
    if manifest.root.is_some() {
        oci::check_mount_points(&tree).map_err(|problem| invalid(origin, problem))?;
    }
    let actual = manifest.address(&Tree::of_entries(digest).id);
    if actual != manifest.id {
        let problem = format!(
            "its files have the address {}, and its manifest says {}",
            &actual[..12],
            manifest.short_id()
        );
        return Err(invalid(origin, problem));
    }
    for (name, text) in [
        (MANIFEST, serde_json::json!(manifest).to_string()),
        ("lock", String::new()),
    ] {
        let path = image.join(name);
        fs::write(&path, text).at("write", &path)?;
    }
    build::flush(staging)
}

/// Writes small files until there are no more, and returns their digest entries.
fn write_small(tree: &Path, files: &Mutex<Receiver<SmallFile>>) -> Result<Vec<TreeEntry>> {
    let mut done = Vec::new();
    loop {
        let next = files.lock().recv();
        let Ok(file) = next else { return Ok(done) };
        let path = tree.join(&file.relative);
        let mut out = create(&path, file.executable)?;
        out.write_all(&file.bytes).at("write", &path)?;
        let size = file.bytes.len() as u64;
        let line = file_line(file.executable, size, &hex(&Sha256::digest(&file.bytes)));
        done.push((file.relative, line, size));
    }
}

/// Creates a file that does not exist yet.
fn create(path: &Path, executable: bool) -> Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(if executable { 0o755 } else { 0o644 })
        .open(path)
        .at("create", path)
}

/// Reads an archive's members in order.
struct ArchiveReader<'a> {
    image: &'a Path,
    tree: &'a Path,
    manifest: &'a Manifest,
    origin: &'a str,
    sink: &'a Sink,
    small: Option<SyncSender<SmallFile>>,
    /// Folders that exist.
    folders: HashSet<PathBuf>,
    /// Links of the tree and their targets. They are made last, so that nothing is written through one.
    links: Vec<(PathBuf, PathBuf)>,
    digest: Vec<TreeEntry>,
    bytes: u64,
}

impl ArchiveReader<'_> {
    fn read_all<R: Read>(&mut self, entries: tar::Entries<'_, R>) -> Result<()> {
        let folder = self.manifest.tree();
        let is_root = self.manifest.root.is_some();
        let mut files = 0;
        let (mut long_path, mut long_target) = (None, None);
        for entry in entries {
            stop::check()?;
            let mut entry = entry.map_err(|error| self.cut_short(&error))?;
            let kind = entry.header().entry_type();
            if kind == EntryType::GNULongName {
                long_path = Some(read_name(&mut entry, self.origin)?);
                continue;
            }
            if kind == EntryType::GNULongLink {
                long_target = Some(read_name(&mut entry, self.origin)?);
                continue;
            }
            let short = |name: io::Result<Option<std::borrow::Cow<'_, Path>>>| {
                name.ok()
                    .flatten()
                    .map(std::borrow::Cow::into_owned)
                    .unwrap_or_default()
            };
            let path = long_path.take().unwrap_or_else(|| short(entry.path().map(Some)));
            let target = long_target.take().unwrap_or_else(|| short(entry.link_name()));
            let shown = path.to_string_lossy().escape_debug().to_string();
            let mut parts = path.components();
            let first = parts.next();
            let relative = parts.as_path().to_owned();
            let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
            if path == Path::new(LOCK) && kind == EntryType::Regular {
                let text = read_text(&mut entry, self.origin, MAX_TEXT, LOCK)?;
                let path = self.image.join(LOCK);
                fs::write(&path, text).at("write", &path)?;
                continue;
            }
            if !is_plain
                || first != Some(Component::Normal(folder.as_ref()))
                || relative.as_os_str().is_empty()
            {
                return Err(invalid(
                    self.origin,
                    format!("it has a member `{shown}` outside `{folder}/`"),
                ));
            }
            if is_root && kind == EntryType::Directory {
                self.make_folder(&relative)?;
                continue;
            }
            files += 1;
            if files > self.manifest.files {
                let problem = format!(
                    "it has more than the {} files that its manifest names",
                    self.manifest.files
                );
                return Err(invalid(self.origin, problem));
            }
            match kind {
                EntryType::Regular => self.read_file(entry, relative)?,
                // Links of a root filesystem are followed in sandboxes alone, whose root it is.
                EntryType::Symlink if is_root || stays_inside(&path, &target) => {
                    self.folder_of(&relative)?;
                    self.links.push((relative, target));
                }
                EntryType::Symlink => {
                    return Err(invalid(
                        self.origin,
                        format!("its link `{shown}` leads out of it"),
                    ));
                }
                _ => {
                    let problem = format!("its member `{shown}` is neither a file nor a symbolic link");
                    return Err(invalid(self.origin, problem));
                }
            }
        }
        Ok(())
    }

    fn read_file(&mut self, mut entry: Entry<'_, impl Read>, relative: PathBuf) -> Result<()> {
        let size = entry.size();
        self.bytes = self.bytes.saturating_add(size);
        if self.bytes > self.manifest.size {
            let problem = format!(
                "its files have more than the {} bytes that its manifest names",
                self.manifest.size
            );
            return Err(invalid(self.origin, problem));
        }
        let executable = entry.header().mode().is_ok_and(|mode| mode & 0o111 != 0);
        self.folder_of(&relative)?;
        if let Some(small) = self.small.as_ref().filter(|_| size <= SMALL) {
            let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
            entry
                .read_to_end(&mut bytes)
                .map_err(|error| self.cut_short(&error))?;
            // It fails where every thread has failed, whose error is reported.
            let sent = small.send(SmallFile {
                relative,
                executable,
                bytes,
            });
            return sent.map_err(|_| ImageError::Cancelled);
        }
        let path = self.tree.join(&relative);
        let mut out = create(&path, executable)?;
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 1 << 18];
        loop {
            stop::check()?;
            let read = match entry.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.cut_short(&error)),
            };
            hasher.update(&buffer[..read]);
            out.write_all(&buffer[..read]).at("write", &path)?;
        }
        self.digest.push((
            relative,
            file_line(executable, size, &hex(&hasher.finalize())),
            size,
        ));
        self.sink.bytes(self.bytes, self.manifest.size);
        Ok(())
    }

    /// Makes the folder of a member.
    fn folder_of(&mut self, relative: &Path) -> Result<()> {
        match relative.parent() {
            Some(folder) => self.make_folder(folder),
            None => Ok(()),
        }
    }

    fn make_folder(&mut self, folder: &Path) -> Result<()> {
        if self.folders.contains(folder) {
            return Ok(());
        }
        if self.folders.len() >= MAX_FOLDERS {
            return Err(invalid(
                self.origin,
                format!("it has more than {MAX_FOLDERS} folders"),
            ));
        }
        let path = self.tree.join(folder);
        fs::create_dir_all(&path).at("create", &path)?;
        self.folders.insert(folder.to_owned());
        self.sink.bytes(self.bytes, self.manifest.size);
        Ok(())
    }

    fn cut_short(&self, error: &io::Error) -> ImageError {
        invalid(self.origin, format!("it is cut short or damaged: {error}"))
    }
}

pub(super) fn read_text(
    entry: &mut Entry<'_, impl Read>,
    origin: &str,
    limit: u64,
    name: &str,
) -> Result<Vec<u8>> {
    if entry.size() > limit {
        let problem = format!("{name} has {} bytes, the limit is {limit}", entry.size());
        return Err(invalid(origin, problem));
    }
    let mut text = Vec::new();
    entry
        .read_to_end(&mut text)
        .map_err(|error| invalid(origin, format!("{name} cannot be read: {error}")))?;
    Ok(text)
}

/// Reads a name that is too long for a header.
fn read_name(entry: &mut Entry<'_, impl Read>, origin: &str) -> Result<PathBuf> {
    let mut name = read_text(entry, origin, MAX_NAME, "a member's name")?;
    if name.last() == Some(&0) {
        name.pop();
    }
    Ok(PathBuf::from(OsString::from_vec(name)))
}
