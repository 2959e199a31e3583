//! Stored skills, of which sessions get copies.

use std::fs::File;
use std::io::Read as _;
use std::sync::Arc;

use cellblock_artifact::{ArtifactDescription, ArtifactId, Kind, Store};
use tokio::task::spawn_blocking;
use zip::ZipArchive;
use zip::result::ZipError;

use super::error::SkillError;
use super::front_matter::{SkillMetadata, check_description, check_name};
use super::limits::SKILLS_FOLDER;
use super::package::SkillPackage;
use super::shared_file::SharedFile;
use super::tree::MANIFEST;

/// Media type of stored skills.
const ZIP: &str = "application/zip";

/// A file of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillFile {
    /// Its path below the skill's folder.
    pub path: String,
    /// Its permission bits.
    pub mode: u32,
    /// Its size.
    pub bytes: u64,
}

/// A stored skill. It keeps its archive open, so that a session has its skills as long as it lives,
/// whatever becomes of the store's record. Clones share the file.
#[derive(Clone, Debug)]
pub struct SkillBundle {
    /// Front matter of the skill.
    pub metadata: SkillMetadata,
    /// Artifact with the plain archive.
    pub sha256: ArtifactId,
    /// Files, in the order of their paths.
    pub files: Arc<[SkillFile]>,
    /// Size of the archive.
    pub archive_bytes: u64,
    archive: ZipArchive<SharedFile>,
}

impl SkillBundle {
    /// Stores a package. Nothing keeps the artifact yet: the caller pins it, or forgets it.
    pub async fn store(store: &Store, package: SkillPackage) -> Result<Self, SkillError> {
        let about = ArtifactDescription {
            kind: Kind::File,
            media_type: ZIP.to_owned(),
            origin: None,
        };
        let sha256 = store.put_file(package.archive, &about).await?;
        Self::open(store, sha256).await
    }

    /// Opens a stored skill.
    pub async fn open(store: &Store, sha256: ArtifactId) -> Result<Self, SkillError> {
        let file = store.verified_file(sha256).await?;
        let read = spawn_blocking(move || Self::read_archive(file, sha256)).await;
        read.expect("reading a skill does not panic")
    }

    fn read_archive(file: File, sha256: ArtifactId) -> Result<Self, SkillError> {
        let failed = || SkillError::file("read a stored skill");
        let damaged = |error: ZipError| failed()(error.into());
        let archive_bytes = file.metadata().map_err(failed())?.len();
        let mut archive = ZipArchive::new(SharedFile::new(file)).map_err(damaged)?;
        let mut files = Vec::new();
        for index in 0..archive.len() {
            let entry = archive.by_index(index).map_err(damaged)?;
            files.push(SkillFile {
                path: entry.name().map_err(damaged)?.into_owned(),
                mode: entry.unix_mode().unwrap_or(0o644) & 0o777,
                bytes: entry.size(),
            });
        }
        Ok(Self {
            metadata: SkillMetadata::of(&content(&mut archive, MANIFEST)?)?,
            sha256,
            files: files.into(),
            archive_bytes,
            archive,
        })
    }

    /// Returns the size of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Reads a file.
    pub async fn read(&self, path: &str) -> Result<Vec<u8>, SkillError> {
        let (mut archive, path) = (self.archive.clone(), path.to_owned());
        let read = spawn_blocking(move || content(&mut archive, &path)).await;
        read.expect("reading a skill does not panic")
    }

    /// Reads `SKILL.md`.
    pub async fn instructions(&self) -> Result<String, SkillError> {
        let manifest = self.read(MANIFEST).await?;
        Ok(String::from_utf8_lossy(&manifest).into_owned())
    }
}

fn content(archive: &mut ZipArchive<SharedFile>, path: &str) -> Result<Vec<u8>, SkillError> {
    let failed = || SkillError::file("read a file of a stored skill");
    let mut entry = archive.by_name(path).map_err(|error| failed()(error.into()))?;
    let mut content = Vec::new();
    entry.read_to_end(&mut content).map_err(failed())?;
    Ok(content)
}

/// A skill of a session: an immutable version, under the name by which the model knows it.
#[derive(Clone, Debug)]
pub struct SessionSkill {
    /// Name, which is also that of its folder.
    pub name: String,
    /// Description of what it does, and of when to use it.
    pub description: String,
    /// ID of the skill in its store; none if it came with the request.
    pub id: Option<String>,
    /// Version in its store, such as `2`.
    pub version: String,
    /// ID of this version in its store, if versions have one there.
    pub version_id: Option<String>,
    /// Files.
    pub bundle: Arc<SkillBundle>,
}

impl SessionSkill {
    /// Returns a version of a stored skill.
    pub fn stored(id: impl Into<String>, version: impl Into<String>, bundle: Arc<SkillBundle>) -> Self {
        Self {
            name: bundle.metadata.name.clone(),
            description: bundle.metadata.description.clone(),
            id: Some(id.into()),
            version: version.into(),
            version_id: None,
            bundle,
        }
    }

    /// Returns a skill that belongs to the session alone, with a name in the place of that in its
    /// front matter.
    pub fn inline(name: Option<String>, bundle: Arc<SkillBundle>) -> Result<Self, SkillError> {
        let name = name.unwrap_or_else(|| bundle.metadata.name.clone());
        check_name(&name)?;
        Ok(Self {
            name,
            description: bundle.metadata.description.clone(),
            id: None,
            version: "1".to_owned(),
            version_id: None,
            bundle,
        })
    }

    /// Returns it with a description in the place of that in its front matter.
    pub fn described(self, description: String) -> Result<Self, SkillError> {
        check_description(&self.name, &description)?;
        Ok(Self { description, ..self })
    }

    /// Returns the folder in which code finds it.
    pub fn folder(&self) -> String {
        format!("{SKILLS_FOLDER}/{}", self.name)
    }
}
