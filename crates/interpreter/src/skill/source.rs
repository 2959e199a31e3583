//! Uploads as lists of files: of an archive, single files, or a folder of the host.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use zip::ZipArchive;
use zip::result::ZipError;

use super::error::{SkillError, shown};
use super::limits::{MAX_ARCHIVE, MAX_DEPTH, MAX_ENTRIES, MAX_FILE};
use super::tree::{FoundFile, is_ignored};

/// Signature of an entry in the directory of an archive.
const ENTRY: &[u8] = b"PK\x01\x02";
/// Bits of a mode that tell the kind of a file, and those of regular files and directories.
const KIND: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const EXECUTABLE: u32 = 0o111;

/// An upload whose files can be read one after the other.
pub(super) trait SkillSource {
    /// Returns its regular files. Anything else except directories is an error.
    fn files(&mut self) -> Result<Vec<FoundFile>, SkillError>;

    /// Reads a file, at most one byte more than a skill's file may have.
    fn read(&mut self, file: &FoundFile) -> Result<Vec<u8>, SkillError>;
}

/// A zip archive.
pub(super) struct ArchiveSource<R>(ZipArchive<R>);

impl<R: Read + Seek> ArchiveSource<R> {
    pub(super) fn open(mut archive: R) -> Result<Self, SkillError> {
        bounded(&mut archive)?;
        let archive = ZipArchive::new(archive).map_err(|error| broken(&error))?;
        if archive.has_duplicate_names() {
            return Err(SkillError::invalid(
                "the archive lists a file twice; pack it again",
            ));
        }
        Ok(Self(archive))
    }
}

/// Rejects an archive that is too large, or that lists so many entries that the list alone would
/// take the host's memory.
fn bounded(archive: &mut (impl Read + Seek)) -> Result<(), SkillError> {
    let read = |source| SkillError::file("read the archive of a skill")(source);
    archive.rewind().map_err(read)?;
    let mut piece = vec![0; 1 << 16];
    let (mut bytes, mut entries, mut filled) = (0_u64, 0, 0);
    loop {
        let length = archive.read(&mut piece[filled..]).map_err(read)?;
        if length == 0 {
            break;
        }
        bytes += length as u64;
        filled += length;
        entries += memchr::memmem::find_iter(&piece[..filled], ENTRY).count();
        // A signature may continue in the next piece.
        let kept = filled.min(ENTRY.len() - 1);
        piece.copy_within(filled - kept..filled, 0);
        filled = kept;
        if bytes > MAX_ARCHIVE {
            return Err(SkillError::invalid(format!(
                "the archive has more than {MAX_ARCHIVE} bytes; leave out files that the skill does not need"
            )));
        }
        if entries > MAX_ENTRIES {
            return Err(SkillError::invalid(format!(
                "the archive lists more than {MAX_ENTRIES} entries; leave out files that the skill does not \
                 need"
            )));
        }
    }
    archive.rewind().map_err(read)
}

fn broken(error: &ZipError) -> SkillError {
    SkillError::invalid(format!(
        "the archive cannot be read: {}; send a zip file without encryption",
        shown(&error.to_string())
    ))
}

impl<R: Read + Seek> SkillSource for ArchiveSource<R> {
    fn files(&mut self) -> Result<Vec<FoundFile>, SkillError> {
        let mut found = Vec::new();
        for index in 0..self.0.len() {
            let entry = self.0.by_index(index).map_err(|error| broken(&error))?;
            let path = entry.name().map_err(|error| broken(&error))?.into_owned();
            // The crate takes `a\` for a directory, too, and would hide such a file.
            if path.ends_with('/') && entry.size() == 0 {
                continue;
            }
            let mode = entry.unix_mode().unwrap_or(REGULAR);
            if entry.is_symlink() || !matches!(mode & KIND, 0 | REGULAR) {
                return Err(irregular(&path));
            }
            found.push(FoundFile {
                path,
                is_executable: mode & EXECUTABLE != 0,
                index,
            });
        }
        Ok(found)
    }

    fn read(&mut self, file: &FoundFile) -> Result<Vec<u8>, SkillError> {
        let entry = self.0.by_index(file.index).map_err(|error| broken(&error))?;
        let mut content = Vec::new();
        // The size in the entry is what the archive says; it may be anything.
        let read = entry.take(MAX_FILE + 1).read_to_end(&mut content);
        read.map_err(|error| broken(&error.into()))?;
        Ok(content)
    }
}

/// Files that were uploaded one by one: their paths, and the places of their bytes in one spool.
pub(super) struct FilesSource<R> {
    pub(super) spool: R,
    pub(super) files: Vec<(String, Range<u64>)>,
}

impl<R: Read + Seek> SkillSource for FilesSource<R> {
    fn files(&mut self) -> Result<Vec<FoundFile>, SkillError> {
        let files = self.files.iter().enumerate();
        let found = files.map(|(index, (path, _))| FoundFile {
            path: path.clone(),
            is_executable: false,
            index,
        });
        Ok(found.collect())
    }

    fn read(&mut self, file: &FoundFile) -> Result<Vec<u8>, SkillError> {
        let place = self.files[file.index].1.clone();
        let failed = || SkillError::file(format!("read the uploaded file `{}`", shown(&file.path)));
        self.spool.seek(SeekFrom::Start(place.start)).map_err(failed())?;
        let length = place.end.saturating_sub(place.start).min(MAX_FILE + 1);
        let mut content = Vec::new();
        let read = self.spool.by_ref().take(length).read_to_end(&mut content);
        read.map_err(failed())?;
        Ok(content)
    }
}

/// A folder of the host.
pub(super) struct FolderSource {
    folder: PathBuf,
    files: Vec<PathBuf>,
}

impl FolderSource {
    pub(super) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            files: Vec::new(),
        }
    }

    fn walk(&mut self, below: &Path, depth: usize, found: &mut Vec<FoundFile>) -> Result<(), SkillError> {
        let folder = self.folder.join(below);
        let failed = || SkillError::file(format!("read the folder `{}`", folder.display()));
        for entry in fs::read_dir(&folder).map_err(failed())? {
            let entry = entry.map_err(failed())?;
            let path = below.join(entry.file_name());
            let Some(text) = path.to_str().map(str::to_owned) else {
                let name = shown(&path.to_string_lossy());
                return Err(SkillError::invalid(format!(
                    "the name `{name}` is not UTF-8; rename it"
                )));
            };
            if is_ignored(&text) {
                continue;
            }
            let metadata = entry.metadata().map_err(failed())?;
            if metadata.is_dir() && depth <= MAX_DEPTH {
                self.walk(&path, depth + 1, found)?;
                continue;
            }
            if !metadata.is_file() {
                return Err(irregular(&text));
            }
            if found.len() >= MAX_ENTRIES {
                return Err(SkillError::invalid(format!(
                    "the folder `{}` has more than {MAX_ENTRIES} files",
                    self.folder.display()
                )));
            }
            let mode = std::os::unix::fs::MetadataExt::mode(&metadata);
            found.push(FoundFile {
                path: text,
                is_executable: mode & EXECUTABLE != 0,
                index: self.files.len(),
            });
            self.files.push(path);
        }
        Ok(())
    }
}

impl SkillSource for FolderSource {
    fn files(&mut self) -> Result<Vec<FoundFile>, SkillError> {
        let mut found = Vec::new();
        self.walk(Path::new(""), 0, &mut found)?;
        Ok(found)
    }

    fn read(&mut self, file: &FoundFile) -> Result<Vec<u8>, SkillError> {
        let path = self.folder.join(&self.files[file.index]);
        let failed = || SkillError::file(format!("read `{}`", path.display()));
        read_some(&mut File::open(&path).map_err(failed())?).map_err(failed())
    }
}

fn read_some(file: &mut File) -> std::io::Result<Vec<u8>> {
    let mut content = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut content)?;
    Ok(content)
}

fn irregular(path: &str) -> SkillError {
    SkillError::invalid(format!(
        "`{}` is not a regular file; replace links with the files that they name",
        shown(path)
    ))
}
