//! Writing an image to one file.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use tar::{Builder, EntryType, Header};

use super::{LOCK, MANIFEST};
use crate::digest::{Tree, entry_line, hex, walk};
use crate::error::IoResultExt as _;
use crate::libraries::{described, uncommon};
use crate::{ImageError, OpenImage, Result, Sink, stop};

/// An archive that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveSummary {
    /// Size of the archive in bytes.
    pub bytes: u64,
    /// SHA-256 of the archive, in hex.
    pub sha256: String,
}

/// Counts and hashes what passes through.
struct HashingWriter<W> {
    inner: W,
    hasher: Sha256,
    bytes: u64,
}

impl<W: Write> Write for HashingWriter<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(buffer)?;
        self.hasher.update(&buffer[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl OpenImage {
    /// Writes the image as an archive, compressed with this zstd level (1 to 22). The same image
    /// gives the same bytes.
    ///
    /// Fails if the image on disk is not what its address says. `name` is how errors call the destination.
    pub async fn export(
        &self,
        to: impl Write + Send + 'static,
        name: &Path,
        level: i32,
        sink: Sink,
    ) -> Result<ArchiveSummary> {
        let (image, name) = (self.clone(), name.to_owned());
        tokio::task::spawn_blocking(move || write(&image, to, &name, level, &sink)).await?
    }
}

fn write(image: &OpenImage, to: impl Write, name: &Path, level: i32, sink: &Sink) -> Result<ArchiveSummary> {
    sink.stage(format!("exporting {}", image.manifest().name));
    let libraries = uncommon(image.manifest());
    if !libraries.is_empty() {
        sink.line(format!(
            "machines that import it need these system libraries: {}",
            described(&libraries)
        ));
    }
    let hashing = HashingWriter {
        inner: BufWriter::with_capacity(1 << 20, to),
        hasher: Sha256::new(),
        bytes: 0,
    };
    let mut encoder = zstd::Encoder::new(hashing, level).at("write", name)?;
    let threads = std::thread::available_parallelism().map_or(1, |it| it.get().min(8));
    encoder
        .multithread(u32::try_from(threads).unwrap_or(1))
        .and_then(|()| encoder.include_checksum(true))
        .at("write", name)?;
    let mut archive = Builder::new(encoder);
    for member in [MANIFEST, LOCK] {
        let path = image.root().join(member);
        match fs::read(&path) {
            Ok(bytes) => append(
                &mut archive,
                Path::new(member),
                0o644,
                &bytes[..],
                bytes.len() as u64,
            )
            .at("write", name)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound && member == LOCK => {}
            Err(error) => return Err(error).at("read", &path),
        }
    }
    let tree = append_tree(&mut archive, image, name, sink)?;
    let encoder = archive.into_inner().at("write", name)?;
    let mut written = encoder.finish().at("write", name)?;
    written.flush().at("write", name)?;
    if image.manifest().address(&tree.id) != image.id() {
        return Err(ImageError::Damaged {
            id: image.manifest().short_id().to_owned(),
            problem: "its files have changed since it was built".to_owned(),
        });
    }
    Ok(ArchiveSummary {
        bytes: written.bytes,
        sha256: hex(&written.hasher.finalize()),
    })
}

fn append_tree(
    archive: &mut Builder<impl Write>,
    image: &OpenImage,
    name: &Path,
    sink: &Sink,
) -> Result<Tree> {
    let tree = image.tree();
    let folder = Path::new(image.manifest().tree());
    let mut paths: Vec<PathBuf> = Vec::new();
    walk(&tree, &mut |path, _| {
        paths.push(path.to_owned());
        Ok(())
    })?;
    paths.sort();
    if image.is_root() {
        for path in empty_folders(&tree)? {
            let member = folder.join(path.strip_prefix(&tree).unwrap_or(&path));
            let header = &mut header(EntryType::Directory, 0o755, 0);
            archive
                .append_data(header, member, io::empty())
                .at("write", name)?;
        }
    }
    let mut entries = Vec::with_capacity(paths.len());
    let mut done = 0;
    for path in paths {
        stop::check()?;
        let (line, size) = entry_line(&path)?;
        let relative = path.strip_prefix(&tree).unwrap_or(&path).to_owned();
        let member = folder.join(&relative);
        if line.starts_with("link ") {
            let target = fs::read_link(&path).at("read the link", &path)?;
            let mut header = header(EntryType::Symlink, 0o777, 0);
            archive
                .append_link(&mut header, &member, &target)
                .at("write", name)?;
        } else {
            let mode = if line.starts_with("program ") {
                0o755
            } else {
                0o644
            };
            let file = File::open(&path).at("open", &path)?;
            append(archive, &member, mode, file, size).at("write", name)?;
        }
        done += size;
        sink.bytes(done, image.manifest().size);
        entries.push((relative, line, size));
    }
    Ok(Tree::of_entries(entries))
}

/// Lists the folders with nothing in them, sorted. The address of a root filesystem does not cover them.
fn empty_folders(tree: &Path) -> Result<Vec<PathBuf>> {
    let mut empty = Vec::new();
    let mut open = vec![tree.to_owned()];
    while let Some(folder) = open.pop() {
        let mut is_empty = true;
        for entry in fs::read_dir(&folder).at("list", &folder)? {
            let entry = entry.at("list", &folder)?;
            is_empty = false;
            if entry.file_type().at("look at", &entry.path())?.is_dir() {
                open.push(entry.path());
            }
        }
        if is_empty {
            empty.push(folder);
        }
    }
    empty.sort();
    Ok(empty)
}

fn append(
    archive: &mut Builder<impl Write>,
    member: &Path,
    mode: u32,
    from: impl io::Read,
    size: u64,
) -> io::Result<()> {
    archive.append_data(&mut header(EntryType::Regular, mode, size), member, from)
}

/// A header without owner and time, which differ between machines.
fn header(kind: EntryType, mode: u32, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(0);
    header
}
