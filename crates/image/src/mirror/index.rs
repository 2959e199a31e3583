//! `images.json`: what a folder or a static server of images has.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::IoResultExt as _;
use crate::home::write_atomically;
use crate::manifest::is_id;
use crate::{ImageError, LAYOUT, Manifest, Result};

/// Name of the index in a mirror.
pub(super) const INDEX: &str = "images.json";
/// Maximum size of an index in bytes.
pub(super) const MAX_INDEX: u64 = 4 << 20;

/// An archive in a mirror's index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MirrorEntry {
    /// Name of the image.
    pub name: String,
    /// Type of the machine that it runs on, such as `x86_64`.
    pub machine: String,
    /// [`LAYOUT`] of the image.
    pub layout: u32,
    /// Content address of the image.
    pub id: String,
    /// Full version of its interpreter.
    pub python: String,
    /// Name of the archive, which lies beside the index.
    pub file: String,
    /// Size of the archive in bytes.
    pub bytes: u64,
    /// SHA-256 of the archive, in hex.
    pub sha256: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Index {
    images: Vec<MirrorEntry>,
}

impl MirrorEntry {
    /// Describes an archive: its image, its file name, its size in bytes and its SHA-256 in hex.
    pub fn new(manifest: &Manifest, file: &str, bytes: u64, sha256: &str) -> Self {
        Self {
            name: manifest.name.clone(),
            machine: manifest.machine.clone(),
            layout: manifest.layout,
            id: manifest.id.clone(),
            python: manifest.python.clone(),
            file: file.to_owned(),
            bytes,
            sha256: sha256.to_owned(),
        }
    }

    fn is_sound(&self) -> bool {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let named = !self.file.is_empty() && !self.file.starts_with('.') && self.file.chars().all(plain);
        named && is_id(&self.id) && is_id(&self.sha256)
    }
}

/// Adds an archive to the index of the folder that holds it, in place of an older one of the same
/// name, machine and layout.
pub fn add_to_mirror(folder: &Path, entry: MirrorEntry) -> Result<()> {
    let path = folder.join(INDEX);
    let mut index = match fs::read(&path) {
        Ok(text) => serde_json::from_slice::<Index>(&text).map_err(|error| ImageError::Io {
            action: "read the index",
            path: path.clone(),
            source: error.into(),
        })?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Index::default(),
        Err(error) => return Err(error).at("read", &path),
    };
    let key = |it: &MirrorEntry| (it.name.clone(), it.machine.clone(), it.layout);
    index.images.retain(|it| key(it) != key(&entry));
    index.images.push(entry);
    index.images.sort_by_key(key);
    let text = serde_json::to_string_pretty(&index).map_err(|error| ImageError::Io {
        action: "write the index",
        path: path.clone(),
        source: error.into(),
    })?;
    write_atomically(&path, &(text + "\n"))?;
    // Servers that run as another user read it.
    let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    fs::set_permissions(&path, readable).at("set the mode of", &path)
}

/// Returns the archive of an image for this machine; an error that says what there is otherwise.
pub(super) fn find(text: &[u8], name: &str) -> Result<MirrorEntry, String> {
    let index: Index =
        serde_json::from_slice(text).map_err(|error| format!("its `{INDEX}` cannot be read: {error}"))?;
    let machine = std::env::consts::ARCH;
    let mut named = index.images.iter().filter(|it| it.name == name).peekable();
    if named.peek().is_none() {
        let mut known: Vec<_> = index
            .images
            .iter()
            .map(|it| it.name.escape_debug().to_string())
            .collect();
        known.sort();
        known.dedup();
        let known = if known.is_empty() {
            "none".to_owned()
        } else {
            known.join(", ")
        };
        return Err(format!("it does not have that image (available: {known})"));
    }
    let fitting = named
        .clone()
        .find(|it| it.machine == machine && it.layout == LAYOUT);
    let Some(entry) = fitting else {
        let there: Vec<_> = named
            .map(|it| format!("{} with layout {}", it.machine.escape_debug(), it.layout))
            .collect();
        return Err(format!(
            "it has the image for {}, and this Cellblock needs {machine} with layout {LAYOUT}",
            there.join(" and ")
        ));
    };
    if !entry.is_sound() {
        return Err(format!(
            "the entry of that image in its `{INDEX}` has an invalid file name, id or SHA-256"
        ));
    }
    Ok(entry.clone())
}
