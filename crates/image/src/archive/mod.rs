//! Images as one file: exported on one machine, imported on another.
//!
//! ```text
//! cellblock-image-NAME-MACHINE-ID.tar.zst      zstd frame of a tar
//! ├── manifest.json          first, so that an unsuitable image is rejected before anything is written
//! ├── requirements.lock
//! └── python/… or root/…     files and links, sorted by path; links of `python` are relative and stay in it
//! ```
//!
//! The content address in the manifest covers every file, so an import that succeeds holds exactly
//! what was exported.

mod export;
mod import;
#[cfg(test)]
pub(crate) mod tests;
mod unpack;

use std::path::Path;

use crate::Manifest;

pub use export::ArchiveSummary;
pub(crate) use import::ArchiveExpectation;

/// Member of an archive that describes the image.
const MANIFEST: &str = "manifest.json";
/// Member of an archive that lists the packages with their hashes.
const LOCK: &str = "requirements.lock";

/// Returns the file name of an image's archive, such as
/// `cellblock-image-default-x86_64-0123456789ab.tar.zst`.
pub fn archive_name(manifest: &Manifest) -> String {
    format!(
        "cellblock-image-{}-{}-{}.tar.zst",
        manifest.name,
        manifest.machine,
        manifest.short_id()
    )
}

/// Whether a link inside an archive leads to a path inside the same archive.
fn stays_inside(link: &Path, target: &Path) -> bool {
    let mut depth = link.components().count().saturating_sub(1);
    target.components().all(|part| match part {
        std::path::Component::Normal(_) => {
            depth += 1;
            true
        }
        std::path::Component::ParentDir => {
            // The folder `python` itself must not be left either: a sandbox sees nothing above it.
            depth = depth.saturating_sub(1);
            depth > 0
        }
        std::path::Component::CurDir => true,
        std::path::Component::RootDir | std::path::Component::Prefix(_) => false,
    })
}
