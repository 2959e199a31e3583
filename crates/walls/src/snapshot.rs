//! The store of snapshots: one directory per set of facts, made once, checked, and replaced when damaged.
//!
//! ```text
//! <home>/snapshots/
//!   <hash>/              the files of a snapshot, and manifest.json
//!   <hash>.lock          shared by the processes that use it; exclusive for the one that removes it
//!   <hash>.build         held by the process that makes it
//!   staging-<hash>-…/    a snapshot that is being made; removed by the next one that makes it
//! ```
//!
//! The memory in a snapshot can be restored only on the same processor and by the same program, so its
//! hash covers everything it depends on. Files are checked against the manifest before each use by
//! a new process: one that was written to or replaced since is hashed, which takes seconds.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use cellblock_sandbox::error::{Blame, Effect, Retry};
use cellblock_sandbox::{Error, Result};
use rustix::fs::{FlockOperation, flock};
use rustix::io::retry_on_intr;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::WallConfig;

/// Form of the manifest and of the directory.
const FORMAT: u32 = 2;
const MANIFEST: &str = "manifest.json";

/// A snapshot could not be written or read.
#[derive(Debug, thiserror::Error)]
#[error("{action} `{}`: {reason}", path.display())]
struct SnapshotError {
    action: String,
    path: PathBuf,
    reason: String,
}

/// Facts that a snapshot depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Facts(BTreeMap<String, String>);

/// The snapshots below a home.
#[derive(Clone, Debug)]
pub struct SnapshotStore {
    root: PathBuf,
}

/// A snapshot in use: it is not removed while this exists.
#[derive(Debug)]
pub struct Snapshot {
    path: PathBuf,
    /// The directory that was checked: another process may replace it.
    inode: u64,
    _shared: File,
}

#[derive(Debug, Serialize, Deserialize)]
struct SnapshotManifest {
    format: u32,
    facts: Facts,
    files: BTreeMap<String, FileFacts>,
}

#[derive(Debug, Serialize, Deserialize)]
struct FileFacts {
    size: u64,
    sha256: String,
    /// Its inode, and when that last changed: seconds and nanoseconds.
    unchanged: (u64, i64, i64),
}

impl Facts {
    /// Returns what every snapshot of a backend depends on: the image, this program, the limits,
    /// the processor and the host's kernel.
    pub fn new(backend: &str, config: &WallConfig) -> io::Result<Self> {
        let program = fs::metadata(&config.executable)?;
        let limits = serde_json::to_string(&config.limits)?;
        let facts = [
            ("backend", backend.to_owned()),
            ("image", config.image.id().to_owned()),
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            // A build during development has the same version.
            (
                "program",
                format!("{}-{}.{}", program.size(), program.mtime(), program.mtime_nsec()),
            ),
            ("limits", limits),
            ("processor", processor()?),
            (
                "kernel",
                rustix::system::uname().release().to_string_lossy().into_owned(),
            ),
        ];
        Ok(Self(facts.map(|(name, value)| (name.to_owned(), value)).into()))
    }

    /// Adds a fact.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    fn hash(&self) -> String {
        hex(&Sha256::digest(serde_json::to_vec(&self.0).unwrap_or_default()))
    }

    /// Returns whether the other snapshot is an older or newer one of the same thing.
    fn replaces(&self, other: &Self) -> bool {
        let same = |name| self.0.get(name) == other.0.get(name);
        self != other && same("backend") && same("image") && same("limits")
    }
}

/// Returns a hash of the processor's model and features.
fn processor() -> io::Result<String> {
    let text = fs::read_to_string("/proc/cpuinfo")?;
    let lines = text.lines().take_while(|line| !line.is_empty());
    let told: Vec<_> = lines
        .filter(|line| {
            ["model name", "flags", "Features"]
                .iter()
                .any(|it| line.starts_with(it))
        })
        .collect();
    Ok(hex(&Sha256::digest(told.join("\n"))))
}

impl SnapshotStore {
    /// Opens the store below a home.
    pub fn below(home: &Path) -> Self {
        Self {
            root: home.join("snapshots"),
        }
    }

    /// Returns the snapshot with these facts. Unless there is one that matches its manifest, `fill`
    /// writes to a new directory first; another process that does so at the same time waits and
    /// uses the result.
    pub async fn find_or_make<F>(&self, facts: &Facts, fill: impl FnOnce(PathBuf) -> F) -> Result<Snapshot>
    where
        F: Future<Output = Result<()>>,
    {
        if let Some(found) = self.checked(facts).await? {
            return Ok(found);
        }
        let building = self.locked(format!("{}.build", facts.hash())).await?;
        if let Some(found) = self.checked(facts).await? {
            return Ok(found);
        }
        let made = self.make(facts, fill).await;
        drop(building);
        made
    }

    /// Makes a snapshot again that turned out to be unusable, unless another process has already
    /// done so.
    pub async fn remake<F>(
        &self,
        facts: &Facts,
        broken: &Snapshot,
        fill: impl FnOnce(PathBuf) -> F,
    ) -> Result<Snapshot>
    where
        F: Future<Output = Result<()>>,
    {
        let building = self.locked(format!("{}.build", facts.hash())).await?;
        let replaced = fs::metadata(&broken.path).is_ok_and(|it| it.ino() != broken.inode);
        if replaced && let Some(found) = self.checked(facts).await? {
            return Ok(found);
        }
        let made = self.make(facts, fill).await;
        drop(building);
        made
    }

    async fn make<F>(&self, facts: &Facts, fill: impl FnOnce(PathBuf) -> F) -> Result<Snapshot>
    where
        F: Future<Output = Result<()>>,
    {
        let hash = facts.hash();
        let prefix = format!("staging-{hash}-");
        // Nobody else makes this one: the lock is ours.
        for left in self.entries(|name| name.starts_with(&prefix)) {
            let _ = fs::remove_dir_all(left);
        }
        let staging = self.root.join(format!("{prefix}{}", std::process::id()));
        create_private(&staging).map_err(|error| failed("create", &staging, &error))?;
        let made = fill(staging.clone()).await;
        let kept = match made {
            Ok(()) => self.keep(facts.clone(), staging.clone()).await,
            Err(error) => Err(error),
        };
        if kept.is_err() {
            let _ = fs::remove_dir_all(&staging);
        }
        kept?;
        self.remove_replaced(facts);
        self.checked(facts).await?.ok_or_else(|| {
            let reason = "it does not match its manifest; check the disk";
            let reason = io::Error::new(io::ErrorKind::InvalidData, reason);
            failed(
                "read the snapshot that was just written to",
                &self.root.join(facts.hash()),
                &reason,
            )
        })
    }

    /// Seals a staging directory and moves it to its place.
    async fn keep(&self, facts: Facts, staging: PathBuf) -> Result<()> {
        let path = self.root.join(facts.hash());
        let aside = self.root.join(format!("staging-{}-old", facts.hash()));
        blocking(move || {
            let sealed = seal(&staging, facts);
            sealed.map_err(|error| failed("seal the snapshot", &staging, &error))?;
            if path.exists() {
                // Machines that run have the old files open.
                fs::rename(&path, &aside).map_err(|error| failed("replace", &path, &error))?;
                let _ = fs::remove_dir_all(&aside);
            }
            fs::rename(&staging, &path).map_err(|error| failed("move the snapshot to", &path, &error))
        })
        .await
    }

    /// Returns the snapshot if it is there and undamaged.
    async fn checked(&self, facts: &Facts) -> Result<Option<Snapshot>> {
        let (root, facts) = (self.root.clone(), facts.clone());
        blocking(move || {
            create_private(&root).map_err(|error| failed("create", &root, &error))?;
            let path = root.join(facts.hash());
            let shared = lock(
                &root.join(format!("{}.lock", facts.hash())),
                FlockOperation::LockShared,
            )?;
            let Ok(found) = fs::metadata(&path) else {
                return Ok(None);
            };
            match check(&path, &facts) {
                Ok(()) => Ok(Some(Snapshot {
                    path,
                    inode: found.ino(),
                    _shared: shared,
                })),
                Err(error) => {
                    tracing::warn!(
                        %error,
                        path = %path.display(),
                        "a snapshot is damaged and will be replaced"
                    );
                    Ok(None)
                }
            }
        })
        .await
    }

    async fn locked(&self, name: String) -> Result<File> {
        let path = self.root.join(name);
        blocking(move || lock(&path, FlockOperation::LockExclusive)).await
    }

    /// Removes snapshots that this one replaces and that no process uses.
    fn remove_replaced(&self, facts: &Facts) {
        for path in self.entries(|name| name.len() == 64) {
            let Ok(manifest) = read_manifest(&path) else {
                continue;
            };
            if !facts.replaces(&manifest.facts) {
                continue;
            }
            let beside = path.with_extension("lock");
            let free = File::open(&beside)
                .map(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).map(|()| file));
            if let Ok(Ok(_alone)) = free {
                let _ = fs::remove_dir_all(&path);
                let _ = fs::remove_file(&beside);
                let _ = fs::remove_file(path.with_extension("build"));
            }
        }
    }

    fn entries(&self, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        entries
            .filter(|entry| entry.file_name().to_str().is_some_and(&wanted))
            .map(|entry| entry.path())
            .collect()
    }
}

impl Snapshot {
    /// Returns the directory of its files.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Writes the manifest of a directory.
fn seal(directory: &Path, facts: Facts) -> io::Result<()> {
    let mut files = BTreeMap::new();
    for name in names(directory)? {
        let path = directory.join(&name);
        let metadata = fs::metadata(&path)?;
        let facts = FileFacts {
            size: metadata.len(),
            sha256: sha256(&path)?,
            unchanged: unchanged(&metadata),
        };
        files.insert(name, facts);
    }
    let manifest = SnapshotManifest {
        format: FORMAT,
        facts,
        files,
    };
    let file = File::create(directory.join(MANIFEST))?;
    serde_json::to_writer_pretty(&file, &manifest)?;
    file.sync_all()
}

/// Compares a directory with its manifest and the facts.
fn check(directory: &Path, facts: &Facts) -> io::Result<()> {
    let manifest = read_manifest(directory)?;
    let invalid = |reason: String| Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    if manifest.format != FORMAT || manifest.facts != *facts {
        return invalid("its manifest is of another snapshot".to_owned());
    }
    let found = names(directory)?;
    if !found.iter().eq(manifest.files.keys()) {
        return invalid(format!("it has the files {}", found.join(", ")));
    }
    for (name, written) in &manifest.files {
        let path = directory.join(name);
        let metadata = fs::metadata(&path)?;
        let same = metadata.len() == written.size
            && (unchanged(&metadata) == written.unchanged || sha256(&path)? == written.sha256);
        if !same {
            return invalid(format!("`{name}` is not the file that was written"));
        }
    }
    Ok(())
}

fn read_manifest(directory: &Path) -> io::Result<SnapshotManifest> {
    Ok(serde_json::from_slice(&fs::read(directory.join(MANIFEST))?)?)
}

/// Returns the names of the files of a directory, which has no directories in it, except the manifest.
fn names(directory: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        found.push(entry?.file_name().to_string_lossy().into_owned());
    }
    found.retain(|name| name != MANIFEST);
    found.sort();
    Ok(found)
}

fn unchanged(metadata: &fs::Metadata) -> (u64, i64, i64) {
    (metadata.ino(), metadata.ctime(), metadata.ctime_nsec())
}

fn sha256(path: &Path) -> io::Result<String> {
    let mut digest = Sha256::new();
    io::copy(&mut File::open(path)?, &mut HashWriter(&mut digest))?;
    Ok(hex(&digest.finalize()))
}

struct HashWriter<'a>(&'a mut Sha256);

impl io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn create_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn lock(path: &Path, operation: FlockOperation) -> Result<File> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(path)
        .map_err(|error| failed("open", path, &error))?;
    retry_on_intr(|| flock(&file, operation)).map_err(|error| failed("lock", path, &error.into()))?;
    Ok(file)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| failed("work on", Path::new("snapshots"), &error.into()))?
}

fn failed(action: &str, path: &Path, error: &io::Error) -> Error {
    let error = SnapshotError {
        action: action.to_owned(),
        path: path.to_owned(),
        reason: error.to_string(),
    };
    Error::of_backend(Blame::Internal, Retry::Never, Effect::None, error)
}

/// Returns bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(64), |text, byte| {
        text + &format!("{byte:02x}")
    })
}

#[cfg(test)]
mod tests;
