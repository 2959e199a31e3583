//! Files that become artifacts: hashed while they are written, and linked into the store's folder
//! instead of being copied to it.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, Write};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use sha2::{Digest as _, Sha256};
use tokio::task::spawn_blocking;

use crate::store::object;
use crate::{ArtifactDescription, ArtifactError, ArtifactId, Store};

/// Number of bytes that are copied at a time.
const PIECE: usize = 1 << 18;

/// A file without a name that is hashed while it is written. Dropping it leaves nothing.
#[derive(Debug)]
pub struct ArtifactDraft {
    file: File,
    hash: Sha256,
    length: u64,
    /// Whether it lies in the folder of its store, and was not linked there before.
    linkable: bool,
}

impl ArtifactDraft {
    fn new(file: File, linkable: bool) -> Self {
        Self {
            file,
            hash: Sha256::new(),
            length: 0,
            linkable,
        }
    }

    /// Returns the number of bytes written so far.
    pub const fn len(&self) -> u64 {
        self.length
    }

    /// Returns whether nothing was written.
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Appends a whole file.
    fn copy(mut self, mut file: File) -> Result<Self, ArtifactError> {
        file.rewind().map_err(ArtifactError::File)?;
        let mut piece = vec![0; PIECE];
        loop {
            match file.read(&mut piece).map_err(ArtifactError::File)? {
                0 => return Ok(self),
                read => self.write_all(&piece[..read]).map_err(ArtifactError::Draft)?,
            }
        }
    }
}

impl Write for ArtifactDraft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Store {
    /// Begins a file to be published by [`put_draft`](Self::put_draft).
    pub fn draft(&self) -> Result<ArtifactDraft, ArtifactError> {
        match self.local_draft() {
            Some(draft) => Ok(draft),
            None => Ok(ArtifactDraft::new(
                tempfile::tempfile().map_err(ArtifactError::Draft)?,
                false,
            )),
        }
    }

    /// Begins a file in the store's folder; nothing without a folder, or if its file system has no
    /// files without names.
    fn local_draft(&self) -> Option<ArtifactDraft> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = rustix::fs::open(self.folder.as_ref()?, flags, Mode::from_raw_mode(0o666)).ok()?;
        Some(ArtifactDraft::new(file.into(), true))
    }

    /// Publishes what was written. Its bytes are neither read nor copied if they are in the store's folder.
    pub async fn put_draft(
        &self,
        draft: ArtifactDraft,
        about: &ArtifactDescription,
    ) -> Result<ArtifactId, ArtifactError> {
        let id = ArtifactId::finish(draft.hash);
        let (length, linkable) = (draft.length, draft.linkable);
        self.put_hashed(draft.file, id, length, linkable, about).await
    }

    /// Copies a file into the store's folder, if there is one and it can be linked there. Returns
    /// the file otherwise.
    pub(crate) async fn copied(&self, file: File) -> Result<Result<ArtifactDraft, File>, ArtifactError> {
        let Some(draft) = self.local_draft() else {
            return Ok(Err(file));
        };
        let copied = spawn_blocking(move || draft.copy(file)).await;
        copied.expect("copying does not panic").map(Ok)
    }

    /// Gives a file its name. Returns `false` if that fails for any reason, damaged bytes under
    /// that name included: copying it then either succeeds or explains why.
    pub(crate) async fn link(&self, file: File, id: ArtifactId) -> (File, bool) {
        let Some(path) = self.folder.as_ref().map(|it| it.join(object(id).as_ref())) else {
            return (file, false);
        };
        let linked = spawn_blocking(move || {
            let linked = named(&file, &path);
            (file, linked.is_ok())
        });
        linked.await.expect("linking does not panic")
    }
}

fn named(file: &File, path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let open = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    rustix::fs::linkat(CWD, &open, CWD, path, AtFlags::SYMLINK_FOLLOW)?;
    Ok(())
}
