//! Checked skills, packed again in a plain form.

use std::fs::File;
use std::io::{Read, Seek, Write as _};
use std::ops::Range;
use std::path::Path;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::error::{SkillError, shown};
use super::front_matter::SkillMetadata;
use super::limits::{MAX_FILE, MAX_UNPACKED};
use super::source::{ArchiveSource, FilesSource, FolderSource, SkillSource};
use super::tree::{MANIFEST, arrange};

/// A skill that was checked. Equal files make equal archives, whatever they came in.
#[derive(Debug)]
pub struct SkillPackage {
    pub(super) metadata: SkillMetadata,
    pub(super) archive: File,
    bytes: u64,
}

impl SkillPackage {
    /// Takes a zip archive apart. Its only `SKILL.md` is at the top or in the only folder there.
    pub fn from_archive(archive: impl Read + Seek) -> Result<Self, SkillError> {
        pack(&mut ArchiveSource::open(archive)?)
    }

    /// Takes files with their paths, which may be below one common folder, and with the places of
    /// their bytes in one spool.
    pub fn from_files(spool: impl Read + Seek, files: Vec<(String, Range<u64>)>) -> Result<Self, SkillError> {
        pack(&mut FilesSource { spool, files })
    }

    /// Takes a folder of the host.
    pub fn from_folder(folder: &Path) -> Result<Self, SkillError> {
        pack(&mut FolderSource::new(folder))
    }

    /// Returns the front matter.
    pub const fn metadata(&self) -> &SkillMetadata {
        &self.metadata
    }

    /// Returns the size of the packed archive.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}

fn pack(source: &mut dyn SkillSource) -> Result<SkillPackage, SkillError> {
    let write = |source| SkillError::file("write the archive of a skill")(source);
    let files = arrange(source.files()?)?;
    let archive = tempfile::tempfile().map_err(write)?;
    let mut packed = ZipWriter::new(archive);
    let mut metadata = None;
    let mut unpacked = 0;
    for file in &files {
        let content = source.read(file)?;
        let length = content.len() as u64;
        unpacked += length;
        if length > MAX_FILE || unpacked > MAX_UNPACKED {
            return Err(SkillError::invalid(format!(
                "the skill is too large at `{}`: a file can have at most {MAX_FILE} bytes unpacked, and \
                 all files at most {MAX_UNPACKED}",
                shown(&file.path)
            )));
        }
        if file.path == MANIFEST {
            metadata = Some(SkillMetadata::of(&content)?);
        }
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .last_modified_time(DateTime::default())
            .unix_permissions(if file.is_executable { 0o755 } else { 0o644 });
        packed
            .start_file(&file.path, options)
            .map_err(|error| write(error.into()))?;
        packed.write_all(&content).map_err(write)?;
    }
    let mut archive = packed.finish().map_err(|error| write(error.into()))?;
    let bytes = archive.metadata().map_err(write)?.len();
    archive.rewind().map_err(write)?;
    Ok(SkillPackage {
        metadata: metadata.ok_or_else(|| SkillError::invalid("there is no `SKILL.md`"))?,
        archive,
        bytes,
    })
}
