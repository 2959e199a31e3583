//! The documents and layers of an image: files of a folder, or members of an archive, which are
//! read where they are.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use rustix::fs::{Mode, OFlags, ResolveFlags};
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};
use tar::{Archive, EntryType};

use super::beneath::relative;
use super::documents::Descriptor;
use crate::digest::hex;
use crate::error::IoResultExt as _;
use crate::error::invalid;
use crate::{Result, stop};

/// Maximum size of a document in bytes.
const MAX_DOCUMENT: u64 = 4 << 20;
/// Maximum number of members of an archive of an image, which has a few for each layer.
const MAX_MEMBERS: usize = 10_000;
const BUFFER: usize = 1 << 18;

/// Location of blobs.
#[derive(Debug)]
pub(super) enum Blobs {
    Folder(OwnedFd),
    Archive {
        file: File,
        members: HashMap<PathBuf, Member>,
    },
}

/// A member of an archive.
#[derive(Clone, Debug)]
pub(super) enum Member {
    At {
        offset: u64,
        size: u64,
    },
    /// A link to another member.
    Link(PathBuf),
}

impl Blobs {
    pub(super) fn folder(path: &Path) -> Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::open(path, flags, Mode::empty())
            .at("open", path)
            .map(Self::Folder)
    }

    /// Lists the members of an archive. A compressed one, or one that arrives through a pipe, is
    /// first unpacked to `spool`.
    pub(super) fn archive(from: File, spool: &Path, most: u64, origin: &str) -> Result<Self> {
        let damaged = |error: io::Error| invalid(origin, format!("it is cut short or damaged: {error}"));
        let mut file = from;
        let is_file = file.metadata().at("look at", Path::new(origin))?.is_file();
        let mut start = [0; 4];
        let plain = is_file && {
            let read = file.read_at(&mut start, 0).map_err(damaged)?;
            Compression::of(&start[..read]) == Compression::None
        };
        if !plain {
            let mut copy = File::options()
                .read(true)
                .write(true)
                .create_new(true)
                .open(spool)
                .at("create", spool)?;
            let mut unpacked = decompressed(BufReader::with_capacity(BUFFER, file))
                .map_err(damaged)?
                .take(most + 1);
            let copied = io::copy(&mut unpacked, &mut copy).map_err(damaged)?;
            if copied > most {
                return Err(invalid(origin, format!("it has more than {most} bytes")));
            }
            file = copy;
        }
        file.seek(SeekFrom::Start(0)).map_err(damaged)?;
        let mut members = HashMap::new();
        let mut archive = Archive::new(file);
        // Raw: names that need a header of their own are not those of images.
        for entry in archive.entries_with_seek().map_err(damaged)?.raw(true) {
            stop::check()?;
            let entry = entry.map_err(damaged)?;
            let shown = String::from_utf8_lossy(&entry.path_bytes())
                .escape_debug()
                .to_string();
            let named =
                |problem: &str| invalid(origin, format!("the name of its member `{shown}` {problem}"));
            let path = relative(&entry.path_bytes()).map_err(named)?;
            let member = match entry.header().entry_type() {
                EntryType::Regular => Member::At {
                    offset: entry.raw_file_position(),
                    size: entry.size(),
                },
                EntryType::Symlink | EntryType::Link => {
                    let is_link = entry.header().entry_type() == EntryType::Symlink;
                    let target = entry
                        .link_name()
                        .map_err(damaged)?
                        .unwrap_or_default()
                        .into_owned();
                    let above = path.parent().filter(|_| is_link).unwrap_or(Path::new(""));
                    Member::Link(plain_path(&above.join(target)))
                }
                _ => continue,
            };
            if members.len() == MAX_MEMBERS {
                return Err(invalid(origin, format!("it has more than {MAX_MEMBERS} members")));
            }
            members.insert(path, member);
        }
        Ok(Self::Archive {
            file: archive.into_inner(),
            members,
        })
    }

    /// Opens a file by its path in the layout or archive.
    pub(super) fn open(&self, path: &Path, origin: &str) -> Result<Blob> {
        let missing = || invalid(origin, format!("it has no file `{}`", shown(path)));
        match self {
            Self::Folder(folder) => {
                let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let opened = rustix::fs::openat2(folder, path, flags, Mode::empty(), ResolveFlags::BENEATH);
                let file = File::from(opened.map_err(|_| missing())?);
                let found = file.metadata().at("look at", path)?;
                if !found.is_file() {
                    return Err(missing());
                }
                Ok(Blob {
                    file,
                    offset: 0,
                    left: found.len(),
                })
            }
            Self::Archive { file, members } => {
                // A link to a link is not followed further.
                let member = members.get(path).and_then(|it| match it {
                    Member::Link(target) => members.get(target),
                    found @ Member::At { .. } => Some(found),
                });
                match member {
                    Some(Member::At { offset, size }) => Ok(Blob {
                        file: file.try_clone().at("open", path)?,
                        offset: *offset,
                        left: *size,
                    }),
                    _ => Err(missing()),
                }
            }
        }
    }

    /// Returns whether a file is there.
    pub(super) fn has(&self, path: &Path) -> bool {
        self.open(path, "").is_ok()
    }

    /// Reads a whole document.
    pub(super) fn bytes(&self, path: &Path, origin: &str) -> Result<Vec<u8>> {
        let mut blob = self.open(path, origin)?;
        if blob.left > MAX_DOCUMENT {
            let problem = format!(
                "its file `{}` has {} bytes, the limit is {MAX_DOCUMENT}",
                shown(path),
                blob.left
            );
            return Err(invalid(origin, problem));
        }
        let mut bytes = Vec::new();
        blob.read_to_end(&mut bytes).at("read", path)?;
        Ok(bytes)
    }

    /// Reads a document with a digest, which it must have.
    pub(super) fn document<T: DeserializeOwned>(&self, descriptor: &Descriptor, origin: &str) -> Result<T> {
        let bytes = self.bytes(&blob_path(&descriptor.digest, origin)?, origin)?;
        expect(&descriptor.digest, &sha256_of(&bytes), origin)?;
        parse(&bytes, &descriptor.digest, origin)
    }
}

/// Reads JSON that the source calls `name`.
pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8], name: &str, origin: &str) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| {
        invalid(
            origin,
            format!("its `{}` cannot be read: {error}", name.escape_debug()),
        )
    })
}

/// Returns the place of a digest in an OCI layout.
pub(super) fn blob_path(digest: &str, origin: &str) -> Result<PathBuf> {
    Ok(Path::new("blobs/sha256").join(sha256(digest, origin)?))
}

/// Fails if what was read does not have the digest that names it.
pub(super) fn expect(digest: &str, actual: &str, origin: &str) -> Result<()> {
    if sha256(digest, origin)? == actual {
        return Ok(());
    }
    Err(invalid(
        origin,
        format!("what it names `{digest}` has the SHA-256 {actual}"),
    ))
}

/// Returns the hexadecimal digits of a digest.
fn sha256<'a>(digest: &'a str, origin: &str) -> Result<&'a str> {
    let digits = digest.strip_prefix("sha256:").filter(|it| crate::is_id(it));
    digits.ok_or_else(|| {
        let problem = format!(
            "`{}` is not a SHA-256 such as `sha256:` and 64 digits",
            digest.escape_debug()
        );
        invalid(origin, problem)
    })
}

/// A part of a file, which other readers of the same file do not move.
#[derive(Debug)]
pub(super) struct Blob {
    file: File,
    offset: u64,
    pub(super) left: u64,
}

impl Read for Blob {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.file.read_at(&mut buffer[..most], self.offset)?;
        self.offset += read as u64;
        self.left -= read as u64;
        Ok(read)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Compression {
    /// Recognizes a compression by the first bytes; the media type could say something else.
    fn of(start: &[u8]) -> Self {
        match start {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            _ => Self::None,
        }
    }
}

/// Decompresses what is compressed, and passes on everything else.
pub(super) fn decompressed<'a>(mut from: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let mut start = Vec::new();
    (&mut from).take(4).read_to_end(&mut start)?;
    let compression = Compression::of(&start);
    let whole = io::Cursor::new(start).chain(from);
    Ok(match compression {
        Compression::None => Box::new(whole),
        Compression::Gzip => Box::new(MultiGzDecoder::new(whole)),
        Compression::Zstd => Box::new(zstd::Decoder::new(whole)?),
    })
}

/// Resolves `..` in the path of a member by its text: archives have no links between folders.
fn plain_path(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::Normal(part) => plain.push(part),
            std::path::Component::ParentDir => drop(plain.pop()),
            _ => {}
        }
    }
    plain
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().escape_debug().to_string()
}

/// Reads the path of a member that a document names.
pub(super) fn member_path(name: &str, origin: &str) -> Result<PathBuf> {
    relative(name.as_bytes()).map_err(|problem| {
        invalid(
            origin,
            format!("the path `{}` in it {problem}", name.escape_debug()),
        )
    })
}

/// Returns the SHA-256 of bytes in hexadecimal.
pub(super) fn sha256_of(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
