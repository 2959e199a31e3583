//! Unpacking a layer: a tar whose members add to, replace or remove what the layers below it have.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use tar::{Archive, Entry, EntryType, PaxExtensions};

use super::beneath::{RootDirectory, relative};
use super::members::MemberSet;
use super::{Limits, Tally};
use crate::error::invalid;
use crate::{ImageError, Result, Sink, stop};

/// Beginning of the name of a member that removes another one.
const WHITEOUT: &[u8] = b".wh.";
/// Name of a member that removes everything that lower layers have in its folder.
const OPAQUE: &[u8] = b".wh..wh..opq";
/// Maximum size of the extended header of a member in bytes.
const MAX_HEADER: u64 = 1 << 20;

/// Unpacks layers onto a root, in their order.
#[derive(Debug)]
pub(super) struct Unpacker<'a> {
    pub(super) root: &'a mut RootDirectory,
    pub(super) tally: &'a mut Tally,
    pub(super) limits: &'a Limits,
    pub(super) origin: &'a str,
    pub(super) sink: &'a Sink,
}

/// Names that a member's extended headers give it.
#[derive(Default)]
struct Names {
    path: Option<Vec<u8>>,
    target: Option<Vec<u8>>,
}

impl Unpacker<'_> {
    /// Unpacks the next layer.
    pub(super) fn unpack(&mut self, layer: impl Read) -> Result<()> {
        let mut archive = Archive::new(layer);
        // Raw: long names are read here, where their length is checked.
        let entries = archive.entries().map_err(|error| self.damaged(&error))?.raw(true);
        let mut own = MemberSet::default();
        let mut names = Names::default();
        for entry in entries {
            stop::check()?;
            let mut entry = entry.map_err(|error| self.damaged(&error))?;
            if self.is_extension(&mut entry, &mut names)? {
                continue;
            }
            self.tally.entries += 1;
            if self.tally.entries > self.limits.entries {
                return Err(self.rejected(format!("it has more than {} files", self.limits.entries)));
            }
            let Names { path, target } = std::mem::take(&mut names);
            let path = path.unwrap_or_else(|| entry.path_bytes().into_owned());
            let shown = String::from_utf8_lossy(&path).escape_debug().to_string();
            let path = relative(&path)
                .map_err(|problem| self.rejected(format!("the name of its member `{shown}` {problem}")))?;
            let target = target.or_else(|| entry.link_name_bytes().map(std::borrow::Cow::into_owned));
            self.add(&mut entry, &path, target, &shown, &mut own)?;
        }
        Ok(())
    }

    /// Reads a header that only names the next member; returns false for an ordinary member.
    fn is_extension(&self, entry: &mut Entry<'_, impl Read>, names: &mut Names) -> Result<bool> {
        let kind = entry.header().entry_type();
        match kind {
            EntryType::GNULongName => names.path = Some(self.text(entry)?),
            EntryType::GNULongLink => names.target = Some(self.text(entry)?),
            EntryType::XGlobalHeader => drop(self.text(entry)?),
            EntryType::XHeader => {
                let text = self.text(entry)?;
                for extension in PaxExtensions::new(&text) {
                    let extension = extension.map_err(|error| self.damaged(&error))?;
                    match extension.key_bytes() {
                        b"path" => names.path = Some(extension.value_bytes().to_vec()),
                        b"linkpath" => names.target = Some(extension.value_bytes().to_vec()),
                        b"size" => {
                            let problem = "a member's size is in an extended header; files of 8 GiB and \
                                           more are not supported";
                            return Err(self.rejected(problem));
                        }
                        key if key.starts_with(b"GNU.sparse.") => {
                            return Err(self.rejected("it has a sparse file, which is not supported"));
                        }
                        _ => {}
                    }
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn add(
        &mut self,
        entry: &mut Entry<'_, impl Read>,
        path: &Path,
        target: Option<Vec<u8>>,
        shown: &str,
        own: &mut MemberSet,
    ) -> Result<()> {
        let kind = entry.header().entry_type();
        if path.as_os_str().is_empty() {
            // The root itself, which exists.
            return match kind {
                EntryType::Directory => Ok(()),
                _ => Err(self.rejected(format!("its member `{shown}` replaces the root"))),
            };
        }
        let name = path.file_name().unwrap_or_default().as_bytes();
        if name == OPAQUE {
            let folder = path.parent().unwrap_or(Path::new(""));
            return self.empty(folder, own).map_err(|error| self.failed(shown, error));
        }
        if let Some(hidden) = name.strip_prefix(WHITEOUT) {
            if hidden.starts_with(WHITEOUT) {
                // What AUFS wrote for itself.
                return Ok(());
            }
            if matches!(hidden, b"" | b"." | b"..") {
                return Err(self.rejected(format!(
                    "its member `{shown}` removes nothing that can have a name"
                )));
            }
            let hidden = path.with_file_name(OsString::from_vec(hidden.to_vec()));
            if own.contains(&hidden) {
                return Ok(());
            }
            return self
                .root
                .remove(&hidden)
                .map_err(|error| self.failed(shown, error));
        }
        match kind {
            EntryType::Regular | EntryType::Continuous => self.file(entry, path, shown)?,
            EntryType::Directory => self
                .root
                .make_folder(path)
                .map_err(|error| self.failed(shown, error))?,
            EntryType::Symlink => {
                let target =
                    target.filter(|it| !it.is_empty() && it.len() <= super::MAX_NAME && !it.contains(&0));
                let target =
                    target.ok_or_else(|| self.rejected(format!("its link `{shown}` has no valid target")))?;
                let target = OsString::from_vec(target);
                self.root
                    .link(path, &target)
                    .map_err(|error| self.failed(shown, error))?;
            }
            EntryType::Link => self.hard_link(path, target.as_deref().unwrap_or_default(), shown)?,
            EntryType::Char | EntryType::Block if path.starts_with("dev") => self.tally.devices += 1,
            EntryType::Char | EntryType::Block => {
                return Err(self.rejected(format!(
                    "its member `{shown}` is a device; only those in `/dev` are left out"
                )));
            }
            EntryType::Fifo => return Err(self.rejected(format!("its member `{shown}` is a named pipe"))),
            EntryType::GNUSparse => {
                return Err(self.rejected(format!(
                    "its member `{shown}` is a sparse file, which is not supported"
                )));
            }
            _ => return Err(self.rejected(format!("its member `{shown}` is of an unknown kind"))),
        }
        own.insert(path);
        Ok(())
    }

    fn file(&mut self, entry: &mut Entry<'_, impl Read>, path: &Path, shown: &str) -> Result<()> {
        let size = entry.size();
        self.tally.bytes = self.tally.bytes.saturating_add(size);
        if self.tally.bytes > self.limits.bytes {
            let problem = format!(
                "its files have more than {} bytes; its member `{shown}` alone has {size}",
                self.limits.bytes
            );
            return Err(self.rejected(problem));
        }
        // Bits that change the user, and the owner, have no meaning here.
        let executable = entry.header().mode().is_ok_and(|mode| mode & 0o111 != 0);
        let mut file = self
            .root
            .create(path, executable)
            .map_err(|error| self.failed(shown, error))?;
        let copied = io::copy(entry, &mut file).map_err(|error| self.failed(shown, error))?;
        if copied != size {
            return Err(self.rejected(format!("it ends in its member `{shown}`")));
        }
        self.sink.bytes(self.tally.bytes, self.tally.bytes);
        Ok(())
    }

    fn hard_link(&mut self, path: &Path, target: &[u8], shown: &str) -> Result<()> {
        let target = relative(target)
            .map_err(|problem| self.rejected(format!("the target of its hard link `{shown}` {problem}")))?;
        self.root
            .hard_link(path, &target)
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::InvalidInput => {
                    let target = target.to_string_lossy().escape_debug().to_string();
                    self.rejected(format!(
                        "its hard link `{shown}` names `{target}`, which is not a file of the image"
                    ))
                }
                _ => self.failed(shown, error),
            })
    }

    /// Removes what lower layers have in a folder.
    fn empty(&mut self, folder: &Path, own: &MemberSet) -> io::Result<()> {
        for name in self.root.names(folder)? {
            let path = folder.join(name);
            if !own.contains(&path) {
                self.root.remove(&path)?;
            } else if self.root.kind(&path)? == Some(rustix::fs::FileType::Directory) {
                self.empty(&path, own)?;
            }
        }
        Ok(())
    }

    fn text(&self, entry: &mut Entry<'_, impl Read>) -> Result<Vec<u8>> {
        if entry.size() > MAX_HEADER {
            let problem = format!(
                "a member's header has {} bytes, the limit is {MAX_HEADER}",
                entry.size()
            );
            return Err(self.rejected(problem));
        }
        let mut text = Vec::new();
        entry
            .read_to_end(&mut text)
            .map_err(|error| self.damaged(&error))?;
        if text.last() == Some(&0) {
            text.pop();
        }
        Ok(text)
    }

    fn rejected(&self, problem: impl Into<String>) -> ImageError {
        invalid(self.origin, problem)
    }

    fn damaged(&self, error: &io::Error) -> ImageError {
        invalid(self.origin, format!("it is cut short or damaged: {error}"))
    }

    fn failed(&self, shown: &str, error: io::Error) -> ImageError {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ImageError::Io {
                action: "unpack to",
                path: self.root.path().to_owned(),
                source: error,
            },
            _ => self.rejected(format!("its member `{shown}` cannot be unpacked: {error}")),
        }
    }
}
