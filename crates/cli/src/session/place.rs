//! Directories of sessions and warm hosts on this machine: a directory each, whose lock says whether its host
//! lives.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use cellblock_image::Home;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, geteuid};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::session_error::{HostKind, SessionError};
use crate::session_id::SessionId;

/// Files of a session's directory.
const LOCK: &str = "lock";
const SOCKET: &str = "socket";
const PLAN: &str = "plan";
const LOG: &str = "log";
/// Maximum part of a log that an error repeats, in bytes.
const LAST_WORDS: u64 = 2048;

/// The directory of all sessions, or all warm hosts, of a home.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    kind: HostKind,
    root: PathBuf,
}

/// The directory of one session.
#[derive(Clone, Debug)]
pub(crate) struct SessionPlace {
    places: Places,
    id: SessionId,
}

/// A session's lock, held. Processes that share the descriptor share the lock, also across `exec`.
#[derive(Debug)]
pub(crate) struct HeldLock(File);

impl Places {
    /// The sessions below a home. Nobody else may reach them.
    pub(crate) fn of(home: &Home) -> Result<Self> {
        Self::at(HostKind::Session, home.root())
    }

    /// The warm hosts below a home. Nobody else may reach them.
    pub(crate) fn warm(home: &Home) -> Result<Self> {
        Self::at(HostKind::Warm, home.root())
    }

    /// The directory of such hosts below a home.
    pub(crate) fn at(kind: HostKind, home: &Path) -> Result<Self> {
        let root = home.join(kind.folder());
        match DirBuilder::new().mode(0o700).create(&root) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(Error::own_file("create", root)(error));
            }
            _ => {}
        }
        let found = fs::symlink_metadata(&root).map_err(Error::own_file("look at", &root))?;
        let user = geteuid().as_raw();
        if !found.is_dir() || found.uid() != user || found.mode() & 0o077 != 0 {
            return Err(SessionError::NotPrivate { path: root, user }.into());
        }
        Ok(Self { kind, root })
    }

    /// Makes the directory of a new session. Its lock is held from the start, so that nobody sweeps it.
    pub(crate) fn create(&self) -> Result<(SessionPlace, HeldLock)> {
        let _registry = self.lock()?;
        let id = SessionId::random();
        self.place(&id).create()
    }

    /// Makes the directory of the host with this id, likewise; `None` where one lives already.
    pub(crate) fn create_as(&self, id: &SessionId) -> Result<Option<(SessionPlace, HeldLock)>> {
        let _registry = self.lock()?;
        let place = self.place(id);
        if is_held(&place.file(LOCK)) {
            return Ok(None);
        }
        place.take_away()?;
        place.create().map(Some)
    }

    /// The session with this id, if its host lives. One whose host is gone is swept, and the error says so.
    pub(crate) fn open(&self, id: &SessionId) -> Result<SessionPlace> {
        let place = self.place(id);
        match place.is_live()? {
            Some(true) => Ok(place),
            None => Err(SessionError::Unknown { id: id.clone() }.into()),
            Some(false) => {
                let log = place.log();
                place.sweep()?;
                Err(SessionError::Gone { id: id.clone(), log }.into())
            }
        }
    }

    /// The place that a session with this id has, whether there is one or not.
    pub(crate) fn place(&self, id: &SessionId) -> SessionPlace {
        SessionPlace {
            places: self.clone(),
            id: id.clone(),
        }
    }

    /// All sessions whose hosts live, in the order of their ids; the others are swept.
    pub(crate) fn live(&self) -> Result<Vec<SessionPlace>> {
        let entries = fs::read_dir(&self.root).map_err(Error::own_file("list", &self.root))?;
        let mut ids: Vec<SessionId> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect();
        ids.sort();
        let mut live = Vec::new();
        for id in ids {
            let place = self.place(&id);
            match place.is_live()? {
                Some(true) => live.push(place),
                Some(false) => place.sweep()?,
                None => {}
            }
        }
        Ok(live)
    }

    /// Held while a directory is made or removed.
    fn lock(&self) -> Result<File> {
        let path = self.root.join(LOCK);
        let file = private(&path).map_err(Error::own_file("open", &path))?;
        retry_on_intr(|| flock(&file, FlockOperation::LockExclusive))
            .map_err(|errno| Error::own_file("lock", &path)(errno.into()))?;
        Ok(file)
    }
}

impl SessionPlace {
    /// The session's id.
    pub(crate) fn id(&self) -> &SessionId {
        &self.id
    }

    /// Returns the kind of service of the host.
    pub(crate) fn kind(&self) -> HostKind {
        self.places.kind
    }

    /// The caller holds the lock of all directories.
    fn create(self) -> Result<(Self, HeldLock)> {
        let path = self.path();
        DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(Error::own_file("create", &path))?;
        let path = self.file(LOCK);
        let lock = private(&path).map_err(Error::own_file("create", &path))?;
        // Somebody who looks whether a host lives may hold it for a moment.
        retry_on_intr(|| flock(&lock, FlockOperation::LockExclusive))
            .map_err(|errno| Error::own_file("lock", &path)(errno.into()))?;
        Ok((self, HeldLock(lock)))
    }

    /// Whether the host lives; `None` where there is no such session.
    pub(crate) fn is_live(&self) -> Result<Option<bool>> {
        let path = self.file(LOCK);
        let lock = match File::open(&path) {
            Ok(lock) => lock,
            // The directory is made before its lock; both are under the registry's.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !self.path().exists() => {
                return Ok(None);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let _registry = self.places.lock()?;
                return Ok(self.path().exists().then(|| is_held(&path)));
            }
            Err(error) => return Err(Error::own_file("open", path)(error)),
        };
        // Shared, so that two that look at once do not take each other for a host.
        match flock(&lock, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Ok(Some(false)),
            Err(Errno::WOULDBLOCK) => Ok(Some(true)),
            Err(errno) => Err(Error::own_file("lock", path)(errno.into())),
        }
    }

    /// Whether a host that is there would serve: its socket is the last that it makes.
    pub(crate) fn has_socket(&self) -> bool {
        self.file(SOCKET).exists()
    }

    /// Removes what a host left that is gone.
    pub(crate) fn sweep(&self) -> Result<()> {
        let _registry = self.places.lock()?;
        if is_held(&self.file(LOCK)) {
            return Ok(());
        }
        self.take_away()
    }

    /// Removes the directory of a session that ends. The caller holds its lock.
    pub(crate) fn remove(&self) -> Result<()> {
        let _registry = self.places.lock()?;
        self.take_away()
    }

    fn take_away(&self) -> Result<()> {
        match fs::remove_dir_all(self.path()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::own_file("remove", self.path())(error))
            }
            _ => Ok(()),
        }
    }

    /// Stores the host's plan, or removes the place.
    pub(crate) fn set_plan(&self, plan: &impl Serialize) -> Result<()> {
        let stored = self.store_plan(plan);
        if stored.is_err() {
            self.remove()?;
        }
        stored
    }

    fn store_plan(&self, plan: &impl Serialize) -> Result<()> {
        let json = serde_json::to_vec(plan)
            .map_err(|error| Error::Refused(format!("write down what was asked for: {error}")))?;
        let path = self.file(PLAN);
        private(&path)
            .and_then(|mut file| file.write_all(&json))
            .map_err(Error::own_file("write", path))
    }

    /// The host's plan.
    pub(crate) fn plan<P: DeserializeOwned>(&self) -> Result<P> {
        let path = self.file(PLAN);
        let read = fs::read(&path).and_then(|json| Ok(serde_json::from_slice(&json)?));
        read.map_err(Error::own_file("read", path))
    }

    /// The log, to write to.
    pub(crate) fn open_log(&self) -> Result<File> {
        let path = self.file(LOG);
        private(&path).map_err(Error::own_file("create", path))
    }

    /// The end of what the host has logged.
    pub(crate) fn log(&self) -> String {
        let read = || -> io::Result<String> {
            let mut file = File::open(self.file(LOG))?;
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(LAST_WORDS)))?;
            let mut end = Vec::new();
            file.take(LAST_WORDS).read_to_end(&mut end)?;
            Ok(String::from_utf8_lossy(&end).trim().to_owned())
        };
        read().unwrap_or_default()
    }

    /// The host's process. Valid while its lock is held.
    pub(crate) fn host(&self) -> Option<Pid> {
        let text = fs::read_to_string(self.file(LOCK)).ok()?;
        Pid::from_raw(text.trim().parse().ok()?)
    }

    /// Does something with the socket's path. It leads through a descriptor of the directory, as a
    /// socket's path may have 107 bytes and a home's may have more.
    pub(crate) fn at_socket<T>(&self, act: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory: OwnedFd = rustix::fs::open(self.path(), flags, Mode::empty())?;
        act(&Path::new("/proc/self/fd")
            .join(directory.as_raw_fd().to_string())
            .join(SOCKET))
    }

    /// Whether this open file is the session's lock.
    pub(crate) fn is_lock(&self, file: &File) -> bool {
        let same =
            |one: &fs::Metadata, other: &fs::Metadata| (one.dev(), one.ino()) == (other.dev(), other.ino());
        matches!((file.metadata(), fs::metadata(self.file(LOCK))), (Ok(one), Ok(other)) if same(&one, &other))
    }

    fn path(&self) -> PathBuf {
        self.places.root.join(self.id.as_str())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }
}

impl HeldLock {
    /// Takes over the lock that `session start` holds.
    pub(crate) fn inherited(file: File) -> Self {
        Self(file)
    }

    /// Another descriptor of the same lock.
    pub(crate) fn share(&self) -> Result<File> {
        self.0.try_clone().map_err(Error::process("share a lock"))
    }

    /// Notes whose it is.
    pub(crate) fn sign(&self, process: Pid) -> io::Result<()> {
        self.0.set_len(0)?;
        (&self.0).seek(SeekFrom::Start(0))?;
        (&self.0).write_all(process.as_raw_nonzero().to_string().as_bytes())
    }
}

fn is_held(lock: &Path) -> bool {
    File::open(lock).is_ok_and(|file| {
        flock(&file, FlockOperation::NonBlockingLockShared).is_err_and(|errno| errno == Errno::WOULDBLOCK)
    })
}

/// Opens or makes a file that is its owner's alone, through no link.
fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
}

#[cfg(test)]
mod tests;
