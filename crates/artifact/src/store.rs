//! Publishing, reading and removing artifacts.
//!
//! `objects/<2 digits>/<62 digits>` contains bytes, `metadata/….json` their description at the
//! first publication, and `origins/…/<sha256 of the origin>.json` an origin each. Bytes are written
//! before metadata, so that artifacts with metadata can be read. Objects never change, so
//! publishers need no lock. `gc` explains how they and collectors agree.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use cellblock_settings::clock;
use futures_util::TryStreamExt;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, WriteMultipart};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use tokio::task::spawn_blocking;

use crate::{ArtifactDescription, ArtifactError, ArtifactId, Metadata, Origin, Reader};

/// Maximum number of bytes that are hashed on the calling thread.
const HASHED_INLINE: usize = 1 << 20;
/// Number of bytes of a file that are read at a time.
const PIECE: usize = 1 << 20;
/// Maximum number of parts of a file that are uploaded concurrently.
const PARTS_IN_FLIGHT: usize = 4;

/// A set of artifacts.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) objects: Arc<dyn ObjectStore>,
    pub(crate) folder: Option<PathBuf>,
    /// Second store that also keeps the artifacts.
    pub(crate) remote: Option<Box<Self>>,
}

impl Store {
    /// Keeps artifacts in any object store.
    pub fn new(objects: Arc<dyn ObjectStore>) -> Self {
        Self {
            objects,
            folder: None,
            remote: None,
        }
    }

    /// Keeps artifacts in a folder, which is created if missing and readable only by its owner.
    pub fn local(folder: impl Into<PathBuf>) -> Result<Self, ArtifactError> {
        let folder = folder.into();
        let made = std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder);
        made.map_err(|source| ArtifactError::Folder {
            path: folder.clone(),
            source,
        })?;
        let objects = LocalFileSystem::new_with_prefix(&folder)
            .map_err(ArtifactError::store("open the store's folder"))?;
        Ok(Self {
            objects: Arc::new(objects),
            folder: Some(folder),
            remote: None,
        })
    }

    /// Returns the folder on this machine that new artifacts are written to, if there is one.
    pub fn folder(&self) -> Option<&std::path::Path> {
        self.folder.as_deref()
    }

    /// Publishes bytes. Equal bytes are stored once; each new origin is added.
    pub async fn put(
        &self,
        bytes: impl Into<Bytes>,
        about: &ArtifactDescription,
    ) -> Result<ArtifactId, ArtifactError> {
        let bytes = bytes.into();
        let id = if bytes.len() <= HASHED_INLINE {
            ArtifactId::of(&bytes)
        } else {
            let bytes = bytes.clone();
            spawn_blocking(move || ArtifactId::of(&bytes))
                .await
                .expect("hashing does not panic")
        };
        let length = bytes.len() as u64;
        loop {
            if !self.holds(id, length).await? {
                // The staged write of an object store is atomic, and concurrent writers write the
                // same bytes.
                let put = self.objects.put(&object(id), bytes.clone().into()).await;
                put.map_err(ArtifactError::store("write an artifact"))?;
            }
            self.describe(id, length, about).await?;
            if self.stays(id).await? {
                self.write_through(id, about).await?;
                return Ok(id);
            }
        }
    }

    /// Publishes a whole file without holding it in memory.
    pub async fn put_file(
        &self,
        file: File,
        about: &ArtifactDescription,
    ) -> Result<ArtifactId, ArtifactError> {
        let file = match self.copied(file).await? {
            Ok(draft) => return self.put_draft(draft, about).await,
            Err(file) => file,
        };
        let hashed = spawn_blocking(move || hash_file(file)).await;
        let (file, id, length) = hashed.expect("hashing does not panic")?;
        self.put_hashed(file, id, length, false, about).await
    }

    /// Publishes a file with this id. One that is `linkable` has no name yet and is in the store's folder.
    pub(crate) async fn put_hashed(
        &self,
        mut file: File,
        id: ArtifactId,
        length: u64,
        mut linkable: bool,
        about: &ArtifactDescription,
    ) -> Result<ArtifactId, ArtifactError> {
        loop {
            if !self.holds(id, length).await? {
                let linked;
                (file, linked) = if std::mem::take(&mut linkable) {
                    self.link(file, id).await
                } else {
                    (file, false)
                };
                if !linked {
                    file = self.upload(file, id).await?;
                }
            }
            self.describe(id, length, about).await?;
            if self.stays(id).await? {
                self.write_through(id, about).await?;
                return Ok(id);
            }
        }
    }

    /// Reads all bytes, and checks that they match the id.
    pub async fn get(&self, id: ArtifactId) -> Result<Bytes, ArtifactError> {
        match self.read_whole(id).await {
            Ok(bytes) => Ok(bytes),
            Err(error) => {
                self.heal(id, error).await?;
                self.read_whole(id).await
            }
        }
    }

    pub(crate) async fn read_whole(&self, id: ArtifactId) -> Result<Bytes, ArtifactError> {
        let bytes = self
            .fetch(id)
            .await?
            .bytes()
            .await
            .map_err(ArtifactError::store("read an artifact"))?;
        match ArtifactId::of(&bytes) {
            actual if actual == id => Ok(bytes),
            actual => Err(ArtifactError::Damaged { id, actual }),
        }
    }

    /// Reads in pieces; the check follows the last one.
    pub async fn reader(&self, id: ArtifactId) -> Result<Reader, ArtifactError> {
        if self.remote.is_some() {
            // Damage that is noticed at the end could not be repaired any more.
            self.verify(id).await?;
        }
        Ok(Reader::new(id, self.fetch(id).await?.into_stream()))
    }

    /// Opens the bytes as a file of the host, read from its start. Those of a remote store are
    /// copied and checked first.
    pub async fn file(&self, id: ArtifactId) -> Result<File, ArtifactError> {
        if self.remote.is_some() {
            return self.verified_file(id).await;
        }
        self.opened(id).await
    }

    /// Opens the bytes as a file of the host, which are checked first, also those of a local store.
    pub async fn verified_file(&self, id: ArtifactId) -> Result<File, ArtifactError> {
        self.verify(id).await?;
        self.opened(id).await
    }

    async fn opened(&self, id: ArtifactId) -> Result<File, ArtifactError> {
        if let Some(path) = self.local_path(id) {
            let opened = spawn_blocking(move || File::open(path)).await;
            if let Ok(Ok(file)) = opened {
                return Ok(file);
            }
        }
        let mut file = tempfile::tempfile().map_err(ArtifactError::File)?;
        let mut reader = Reader::new(id, self.fetch(id).await?.into_stream());
        while let Some(piece) = reader.next().await? {
            // Pieces are small, and the file is the page cache for the most part.
            file.write_all(&piece).map_err(ArtifactError::File)?;
        }
        file.seek(SeekFrom::Start(0)).map_err(ArtifactError::File)?;
        Ok(file)
    }

    /// Reads all bytes to check that they match the id. With a remote store, repairs them if they do not.
    pub async fn verify(&self, id: ArtifactId) -> Result<(), ArtifactError> {
        match self.check(id).await {
            Ok(()) => Ok(()),
            Err(error) => self.heal(id, error).await,
        }
    }

    /// Reads all bytes to check that they match the id, and repairs nothing.
    pub async fn check(&self, id: ArtifactId) -> Result<(), ArtifactError> {
        if let Some(path) = self.local_path(id) {
            // In one go: a store reads a file in small pieces, each on another thread.
            let hashed = spawn_blocking(move || hash_file(File::open(path).map_err(ArtifactError::File)?));
            return match hashed.await.expect("hashing does not panic")? {
                (_, actual, _) if actual == id => Ok(()),
                (_, actual, _) => Err(ArtifactError::Damaged { id, actual }),
            };
        }
        let mut reader = Reader::new(id, self.fetch(id).await?.into_stream());
        while reader.next().await?.is_some() {}
        Ok(())
    }

    /// Reads a part. A part cannot be checked against the id: use it only if damage is noticed in
    /// another way.
    pub async fn get_range(&self, id: ArtifactId, range: Range<u64>) -> Result<Bytes, ArtifactError> {
        let bytes = if let Some(bytes) = self.bytes(id).await? {
            bytes
        } else {
            self.heal(id, ArtifactError::NotFound { id }).await?;
            self.bytes(id).await?.ok_or(ArtifactError::NotFound { id })?
        };
        if range.start > range.end || range.end > bytes {
            return Err(ArtifactError::Range {
                id,
                start: range.start,
                end: range.end,
                bytes,
            });
        }
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        self.objects
            .get_range(&object(id), range)
            .await
            .map_err(ArtifactError::of(id, "read a part of an artifact"))
    }

    /// Returns whether the artifact exists.
    pub async fn exists(&self, id: ArtifactId) -> Result<bool, ArtifactError> {
        if self.bytes(id).await?.is_some() {
            return Ok(true);
        }
        match &self.remote {
            Some(remote) => Ok(remote.bytes(id).await?.is_some()),
            None => Ok(false),
        }
    }

    /// Reads an artifact's metadata.
    pub async fn metadata(&self, id: ArtifactId) -> Result<Metadata, ArtifactError> {
        let mut metadata: Metadata = match self.json(id, &sidecar(id)).await {
            Ok(metadata) => metadata,
            Err(error) => match &self.remote {
                Some(remote) => return Box::pin(remote.metadata(id)).await,
                None => return Err(error),
            },
        };
        let mut origins: Vec<_> = self
            .objects
            .list(Some(&origins(id)))
            .try_collect()
            .await
            .map_err(ArtifactError::store("list origins"))?;
        origins.sort_by_cached_key(|origin| (origin.last_modified, origin.location.to_string()));
        for origin in origins {
            metadata.origins.push(self.json(id, &origin.location).await?);
        }
        Ok(metadata)
    }

    /// Adds an origin to a published artifact, unless it has that one.
    pub async fn add_origin(&self, id: ArtifactId, origin: &Origin) -> Result<(), ArtifactError> {
        let json = serde_json::to_vec(origin).map_err(ArtifactError::Encode)?;
        let location = origins(id).join(format!("{}.json", ArtifactId::of(&json)));
        self.create(&location, origin).await?;
        match &self.remote {
            Some(remote) => Box::pin(remote.add_origin(id, origin)).await,
            None => Ok(()),
        }
    }

    /// Lists all artifacts, sorted by id.
    pub async fn list(&self) -> Result<Vec<ArtifactId>, ArtifactError> {
        let objects = self.objects.list(Some(&Path::from("objects")));
        let objects = objects.try_filter_map(async |found| Ok(id_of(&found.location)));
        let mut ids: Vec<_> = objects
            .try_collect()
            .await
            .map_err(ArtifactError::store("list artifacts"))?;
        ids.sort_unstable();
        Ok(ids)
    }

    /// Removes an artifact and its metadata; returns whether it existed.
    pub async fn remove(&self, id: ArtifactId) -> Result<bool, ArtifactError> {
        let here = self.exists(id).await?;
        self.erase(id).await?;
        Ok(here)
    }

    /// Returns the path of the bytes, if they are in a folder of this machine.
    pub fn local_path(&self, id: ArtifactId) -> Option<PathBuf> {
        let path = self.folder.as_ref()?.join(object(id).as_ref());
        path.is_file().then_some(path)
    }

    /// Writes a file's bytes, which must match the id.
    pub(crate) async fn upload(&self, mut file: File, id: ArtifactId) -> Result<File, ArtifactError> {
        file.seek(SeekFrom::Start(0)).map_err(ArtifactError::File)?;
        let start = self.objects.put_multipart(&object(id)).await;
        let mut upload = WriteMultipart::new(start.map_err(ArtifactError::store("write an artifact"))?);
        let mut hash = Sha256::new();
        loop {
            let read = spawn_blocking(move || read_piece(file));
            let (rest, piece) = read.await.expect("reading does not panic")?;
            file = rest;
            if piece.is_empty() {
                break;
            }
            hash.update(&piece);
            let room = upload.wait_for_capacity(PARTS_IN_FLIGHT).await;
            room.map_err(ArtifactError::store("write an artifact"))?;
            upload.put(piece.into());
        }
        if ArtifactId::finish(hash) != id {
            upload
                .abort()
                .await
                .map_err(ArtifactError::store("discard a half written artifact"))?;
            return Err(ArtifactError::Changed);
        }
        upload
            .finish()
            .await
            .map_err(ArtifactError::store("write an artifact"))?;
        Ok(file)
    }

    async fn fetch(&self, id: ArtifactId) -> Result<object_store::GetResult, ArtifactError> {
        self.objects
            .get(&object(id))
            .await
            .map_err(ArtifactError::of(id, "read an artifact"))
    }

    async fn bytes(&self, id: ArtifactId) -> Result<Option<u64>, ArtifactError> {
        Ok(self.look(&object(id)).await?.map(|found| found.bytes))
    }

    /// Returns whether the bytes need not be written; an object with other bytes is damaged and is
    /// replaced. New bytes cost no read: only existing ones are read, which is cheaper than writing
    /// them.
    async fn holds(&self, id: ArtifactId, length: u64) -> Result<bool, ArtifactError> {
        if self.bytes(id).await? != Some(length) {
            return Ok(false);
        }
        match self.check(id).await {
            Ok(()) => Ok(true),
            // Unreadable bytes are written again for any reason; if that also fails, its error
            // explains why.
            Err(_) => Ok(false),
        }
    }

    pub(crate) async fn describe(
        &self,
        id: ArtifactId,
        bytes: u64,
        about: &ArtifactDescription,
    ) -> Result<(), ArtifactError> {
        let metadata = Metadata {
            sha256: id,
            kind: about.kind,
            media_type: about.media_type.clone(),
            bytes,
            created_unix_ms: clock::unix_millis(),
            origins: Vec::new(),
        };
        if !self.create(&sidecar(id), &metadata).await? {
            self.touch(&sidecar(id)).await?;
        }
        match &about.origin {
            Some(origin) => self.add_origin(id, origin).await,
            None => Ok(()),
        }
    }

    /// Rewrites an object unchanged, so that it is new to a collector. If it was removed meanwhile,
    /// it stays so.
    async fn touch(&self, location: &Path) -> Result<(), ArtifactError> {
        let action = "write an artifact's metadata";
        let found = match self.objects.get(location).await {
            Ok(found) => found,
            Err(object_store::Error::NotFound { .. }) => return Ok(()),
            Err(source) => return Err(ArtifactError::Store { action, source }),
        };
        let bytes = found.bytes().await.map_err(ArtifactError::store(action))?;
        let put = self.objects.put(location, bytes.into()).await;
        put.map(drop).map_err(ArtifactError::store(action))
    }

    /// Writes JSON unless it exists; returns whether it was written.
    pub(crate) async fn create(
        &self,
        location: &Path,
        value: &impl Serialize,
    ) -> Result<bool, ArtifactError> {
        let json = serde_json::to_vec(value).map_err(ArtifactError::Encode)?;
        let options = PutOptions::from(PutMode::Create);
        match self.objects.put_opts(location, json.into(), options).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
            Err(source) => Err(ArtifactError::Store {
                action: "write an artifact's metadata",
                source,
            }),
        }
    }

    async fn json<T: DeserializeOwned>(&self, id: ArtifactId, location: &Path) -> Result<T, ArtifactError> {
        let action = "read an artifact's metadata";
        let found = self
            .objects
            .get(location)
            .await
            .map_err(ArtifactError::of(id, action))?;
        let json = found.bytes().await.map_err(ArtifactError::store(action))?;
        serde_json::from_slice(&json).map_err(|source| ArtifactError::Metadata { id, source })
    }
}

pub(crate) fn object(id: ArtifactId) -> Path {
    beneath("objects", id, "")
}

pub(crate) fn sidecar(id: ArtifactId) -> Path {
    beneath("metadata", id, ".json")
}

pub(crate) fn origins(id: ArtifactId) -> Path {
    beneath("origins", id, "")
}

fn beneath(folder: &str, id: ArtifactId, extension: &str) -> Path {
    let digits = id.to_string();
    let (first, rest) = digits.split_at(2);
    Path::from_iter([folder.to_owned(), first.to_owned(), format!("{rest}{extension}")])
}

pub(crate) fn id_of(object: &Path) -> Option<ArtifactId> {
    let mut parts = object.parts().skip(1);
    let digits = format!("{}{}", parts.next()?.as_ref(), parts.next()?.as_ref());
    digits.strip_suffix(".json").unwrap_or(&digits).parse().ok()
}

fn hash_file(mut file: File) -> Result<(File, ArtifactId, u64), ArtifactError> {
    let mut hash = Sha256::new();
    let mut length = 0;
    file.seek(SeekFrom::Start(0)).map_err(ArtifactError::File)?;
    loop {
        let (rest, piece) = read_piece(file)?;
        file = rest;
        if piece.is_empty() {
            break;
        }
        hash.update(&piece);
        length += piece.len() as u64;
    }
    file.seek(SeekFrom::Start(0)).map_err(ArtifactError::File)?;
    Ok((file, ArtifactId::finish(hash), length))
}

fn read_piece(file: File) -> Result<(File, Vec<u8>), ArtifactError> {
    let mut piece = Vec::new();
    (&file)
        .take(PIECE as u64)
        .read_to_end(&mut piece)
        .map_err(ArtifactError::File)?;
    Ok((file, piece))
}
