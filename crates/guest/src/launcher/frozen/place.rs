//! The place of a frozen template on the host, and whether it may be used.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cellblock_jail::error::{SyscallResult, chain};
use cellblock_jail::{Error, Result};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::manifest::{FileStamp, FrozenManifest};

/// Permissions that would let others change a file.
const OTHERS_WRITE: u32 = 0o022;

/// Time until it is tried again to make one that could not be made: the reason may be a full disk.
const REFUSED_FOR: Duration = Duration::from_hours(24);

/// The directory of an image's frozen template, and the key of what is used or made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrozenPlace {
    /// Directory of the host that belongs to this image alone.
    pub directory: PathBuf,
    /// Digest of everything that the frozen memory depends on.
    pub key: String,
}

/// State of a frozen template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrozenState {
    /// It can be used.
    Ready,
    /// There is none yet.
    Missing,
    /// There is one that cannot be used, and that the next one replaces.
    Damaged(String),
    /// None is used or made, for this reason.
    Refused(String),
}

/// The files that a launcher fills. Nobody else does meanwhile.
#[derive(Debug)]
pub(super) struct ClaimedFiles {
    pub(super) memory: File,
    pub(super) manifest: File,
    _lock: File,
}

impl FrozenPlace {
    pub(super) fn memory(&self, directory: &Path) -> PathBuf {
        directory.join(format!("{}.memory", self.key))
    }

    pub(super) fn manifest(&self, directory: &Path) -> PathBuf {
        directory.join(format!("{}.json", self.key))
    }

    /// Returns the path of the manifest until the template was thawed once: no start may use it before.
    pub(super) fn draft(&self, directory: &Path) -> PathBuf {
        directory.join(format!("{}.new", self.key))
    }

    fn refusal(&self) -> PathBuf {
        self.directory.join(format!("{}.refused", self.key))
    }

    /// Looks at it. Its memory has hundreds of megabytes, which are not read: Linux changes the time
    /// of a file's inode with each write, and programs cannot set that time. Only this user could
    /// write such a file at all, who can change the image and this program as well.
    pub fn state(&self) -> FrozenState {
        if let Err(error) = self.check_owner(&self.directory) {
            return match &error {
                Error::Path { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                    FrozenState::Missing
                }
                error => FrozenState::Refused(chain(error)),
            };
        }
        if let Some(reason) = self.refused() {
            return FrozenState::Refused(reason);
        }
        if !self.manifest(&self.directory).exists() {
            return FrozenState::Missing;
        }
        match self.check() {
            Ok(()) => FrozenState::Ready,
            Err(error) => FrozenState::Damaged(chain(&error)),
        }
    }

    /// Returns why none could be made, unless that was long ago.
    fn refused(&self) -> Option<String> {
        let since = fs::metadata(self.refusal()).and_then(|it| it.modified()).ok()?;
        let is_old = since.elapsed().is_ok_and(|age| age > REFUSED_FOR);
        (!is_old)
            .then(|| fs::read_to_string(self.refusal()).ok())
            .flatten()
    }

    fn check(&self) -> Result<()> {
        let (memory, manifest) = (self.memory(&self.directory), self.manifest(&self.directory));
        self.check_owner(&memory)?;
        self.check_owner(&manifest)?;
        let read = FrozenManifest::read(File::open(&manifest).during_on("open", &manifest)?, &self.key)?;
        let found = fs::symlink_metadata(&memory).during_on("look at", &memory)?;
        if read.memory == Some(FileStamp::of(&found)) {
            Ok(())
        } else {
            Err(Error::Child("its memory is not the file that was written".into()))
        }
    }

    /// Checks that only this user can have written a file or directory.
    #[expect(clippy::unused_self, reason = "the rule of this place")]
    fn check_owner(&self, path: &Path) -> Result<()> {
        let found = fs::symlink_metadata(path).during_on("look at", path)?;
        let us = rustix::process::geteuid().as_raw();
        let plain = found.is_dir() || found.is_file();
        if plain && found.uid() == us && found.mode() & OTHERS_WRITE == 0 {
            return Ok(());
        }
        Err(Error::Child(format!(
            "`{}` must be a file or directory of user {us} that nobody else can write to; remove it",
            path.display()
        )))
    }

    /// Lets starts use what a launcher has filled.
    pub(super) fn publish(&self) -> Result<()> {
        let draft = self.draft(&self.directory);
        fs::rename(&draft, self.manifest(&self.directory)).during_on("rename", &draft)
    }

    /// Makes new files in place of everything that the directory has; `None` if another launcher
    /// fills them, or has filled them.
    pub(super) fn claim(&self) -> Result<Option<ClaimedFiles>> {
        let directory = &self.directory;
        // Others can enter the inner directory, through which a keep sees it, but not the outer one.
        if let Some(outer) = directory.parent() {
            create_dir(outer, 0o700)?;
        }
        create_dir(directory, 0o755)?;
        self.check_owner(directory)?;
        let path = directory.join("lock");
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .during_on("open", &path)?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err()
            || self.state() == FrozenState::Ready
        {
            return Ok(None);
        }
        for entry in fs::read_dir(directory).during_on("list", directory)?.flatten() {
            if entry.file_name() != "lock" {
                fs::remove_file(entry.path()).during_on("remove", entry.path())?;
            }
        }
        Ok(Some(ClaimedFiles {
            memory: create(&self.memory(directory))?,
            manifest: create(&self.draft(directory))?,
            _lock: lock,
        }))
    }

    /// Removes it, so that the next start makes it anew; nothing if a launcher does that already: without
    /// its files, that one would note that none can be made.
    pub fn discard(&self) {
        let lock = File::open(self.directory.join("lock"));
        let is_claimed = |lock: &File| flock(lock, FlockOperation::NonBlockingLockExclusive).is_err();
        if !lock.as_ref().is_ok_and(is_claimed) {
            self.clear();
        }
    }

    /// Removes its files, which this launcher has claimed.
    pub(super) fn clear(&self) {
        let directory = &self.directory;
        for path in [
            self.manifest(directory),
            self.draft(directory),
            self.memory(directory),
        ] {
            let _ = fs::remove_file(path);
        }
    }

    /// Notes that none can be made with this key.
    pub(super) fn refuse(&self, reason: &str) {
        self.clear();
        let _ = fs::write(self.refusal(), reason);
        let _ = fs::set_permissions(self.refusal(), Permissions::from_mode(0o600));
    }
}

fn create_dir(path: &Path, mode: u32) -> Result<()> {
    match DirBuilder::new().mode(mode).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error).during_on("create", path),
        Err(_) => Ok(()),
        Ok(()) => {
            // Whatever the caller's mask is.
            fs::set_permissions(path, Permissions::from_mode(mode)).during_on("set the mode of", path)
        }
    }
}

fn create(path: &Path) -> Result<File> {
    let file = OpenOptions::new()
        .create_new(true)
        .read(true)
        .write(true)
        .open(path)
        .during_on("create", path)?;
    // A keep has other user ids, and reads it.
    file.set_permissions(Permissions::from_mode(0o644))
        .during_on("set the mode of", path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::time::SystemTime;

    use super::*;

    fn place(folder: &Path) -> FrozenPlace {
        FrozenPlace {
            directory: folder.join("frozen/image"),
            key: "key".into(),
        }
    }

    /// Fills files as a launcher does.
    fn fill(place: &FrozenPlace) {
        let mut files = place.claim().unwrap().unwrap();
        files.memory.write_all(b"memory").unwrap();
        let manifest = FrozenManifest {
            key: place.key.clone(),
            memory: Some(FileStamp::of(&files.memory.metadata().unwrap())),
            ..FrozenManifest::default()
        };
        manifest.write(&files.manifest).unwrap();
        assert_eq!(place.state(), FrozenState::Missing, "it was not thawed yet");
        place.discard();
        place.publish().unwrap();
    }

    #[test]
    fn one_launcher_fills_a_place_and_removes_what_has_other_keys() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(folder.path());
        assert_eq!(place.state(), FrozenState::Missing);
        let other = FrozenPlace {
            key: "other".into(),
            ..place.clone()
        };
        fill(&other);
        assert_eq!(other.state(), FrozenState::Ready);
        let files = place.claim().unwrap().unwrap();
        assert!(place.claim().unwrap().is_none(), "another one fills it");
        drop(files);
        assert_eq!(other.state(), FrozenState::Missing);
        fill(&place);
        assert_eq!(place.state(), FrozenState::Ready);
        assert!(place.claim().unwrap().is_none(), "it is filled");
        assert_eq!(fs::read_dir(&place.directory).unwrap().count(), 3);
    }

    #[test]
    fn changed_files_are_damaged_and_a_refusal_names_its_reason() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(folder.path());
        // Two changes within one tick of Linux's clock for files have the same time.
        let change = |path: PathBuf, text: &[u8]| {
            let stamp = || FileStamp::of(&fs::metadata(&path).unwrap());
            let before = stamp();
            while stamp() == before {
                fs::write(&path, text).unwrap();
            }
        };
        for damage in ["memory", "manifest"] {
            fill(&place);
            match damage {
                "memory" => change(place.memory(&place.directory), b"yromem"),
                _ => change(place.manifest(&place.directory), b"{}"),
            }
            assert!(matches!(place.state(), FrozenState::Damaged(_)), "{damage}");
        }
        place.refuse("threads");
        assert_eq!(place.state(), FrozenState::Refused("threads".into()));
        let refusal = File::options().write(true).open(place.refusal()).unwrap();
        refusal.set_modified(SystemTime::now() - 2 * REFUSED_FOR).unwrap();
        assert_eq!(place.state(), FrozenState::Missing);
        fill(&place);
        assert_eq!(place.state(), FrozenState::Ready);
    }

    #[test]
    fn a_place_that_others_can_write_to_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(folder.path());
        fill(&place);
        fs::set_permissions(&place.directory, Permissions::from_mode(0o777)).unwrap();
        let state = place.state();
        assert!(
            matches!(&state, FrozenState::Refused(reason) if reason.contains("nobody else can write")),
            "{state:?}"
        );
        assert!(place.claim().is_err());
        fs::remove_dir_all(&place.directory).unwrap();
        std::os::unix::fs::symlink(folder.path(), &place.directory).unwrap();
        assert!(matches!(place.state(), FrozenState::Refused(_)));
    }
}
