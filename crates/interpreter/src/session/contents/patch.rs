//! Changes of several files of the sandbox in one step: all of them, or none.
//!
//! ```text
//! read all files, make their new contents ──> write, then delete ──> a refusal: put back what was done
//! ```

use cellblock_protocol::FileStamp;

use crate::error::{Error, Result};
use crate::session::contents::Contents;
use crate::session::contents::change::EditError;
use crate::session::contents::edit::{CHANGED, EditRefused, RefusedFile, TRIES, refusal};
use crate::session::journal::Journal;
use crate::session::runtime::Runtime;

/// Maximum number of bytes of all files of a step, before and after it, because they are in memory.
const MAX_BYTES: u64 = 32 << 20;
/// Word of a guest for a file that is not there.
const NOT_FOUND: &str = "not_found";

/// A change of one file.
pub(crate) struct FileChange {
    /// The file.
    pub(crate) path: String,
    pub(crate) action: FileAction,
}

/// Returns the new content of a file, or an error for the model.
pub(crate) type ContentChange = Box<dyn Fn(&[u8]) -> std::result::Result<Vec<u8>, String> + Send + Sync>;

/// Change of a file.
pub(crate) enum FileAction {
    /// Creates it; an existing file is refused.
    Create(Vec<u8>),
    /// Changes its content.
    Update(ContentChange),
    /// Deletes it.
    Delete,
}

/// Refusal of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PatchRefused {
    /// Index of the change that was refused.
    pub(crate) index: usize,
    pub(crate) cause: PatchCause,
    /// Files that could not be put back after a later change was refused; the others are as they were.
    pub(crate) changed: Vec<String>,
}

/// Reason for the refusal of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PatchCause {
    /// The sandbox refused the file.
    File(RefusedFile),
    /// The file to create exists.
    Exists,
    /// The content cannot be changed like this.
    Content(String),
    /// The files of the step have more bytes than fit.
    TooMuch { limit: u64 },
}

/// A change with everything that it needs.
struct StagedChange<'a> {
    index: usize,
    path: &'a str,
    /// Content and stamp of the file, unless it is created.
    before: Option<(Vec<u8>, FileStamp)>,
    /// New content, unless it is deleted.
    after: Option<Vec<u8>>,
}

type Outcome<T> = std::result::Result<T, PatchRefused>;

impl PatchRefused {
    fn new(index: usize, cause: PatchCause) -> Self {
        Self {
            index,
            cause,
            changed: Vec::new(),
        }
    }

    /// Returns whether somebody else changed a file meanwhile, and nothing is left of the step.
    fn is_late(&self) -> bool {
        matches!(&self.cause, PatchCause::File(refused) if refused.code == CHANGED) && self.changed.is_empty()
    }
}

impl Runtime {
    /// Changes files, each of at most `limit` bytes before and after; their paths differ.
    pub(in crate::session) async fn patch_files(
        &mut self,
        contents: &mut Contents,
        journal: &mut Journal,
        changes: &[FileChange],
        limit: u64,
    ) -> Result<Outcome<()>> {
        self.settled(contents, journal).await?;
        let mut tries = 0;
        loop {
            tries += 1;
            let staged = match self.stage(changes, limit).await? {
                Ok(staged) => staged,
                Err(refused) => return Ok(Err(refused)),
            };
            self.has_files = true;
            match self.commit(staged).await? {
                Err(refused) if refused.is_late() && tries < TRIES => {}
                ended => return Ok(ended),
            }
        }
    }

    async fn stage<'a>(
        &mut self,
        changes: &'a [FileChange],
        limit: u64,
    ) -> Result<Outcome<Vec<StagedChange<'a>>>> {
        let mut staged = Vec::with_capacity(changes.len());
        let mut bytes = 0;
        for (index, change) in changes.iter().enumerate() {
            let made = match self.staged(index, change, limit).await? {
                Ok(made) => made,
                Err(cause) => return Ok(Err(PatchRefused::new(index, cause))),
            };
            let before = made.before.as_ref().map_or(0, |before| before.0.len());
            bytes += (before + made.after.as_ref().map_or(0, Vec::len)) as u64;
            if bytes > MAX_BYTES {
                let cause = PatchCause::TooMuch { limit: MAX_BYTES };
                return Ok(Err(PatchRefused::new(index, cause)));
            }
            staged.push(made);
        }
        // What is deleted cannot be put back with all that it was, such as its mode.
        staged.sort_by_key(|change| change.after.is_none());
        Ok(Ok(staged))
    }

    async fn staged<'a>(
        &mut self,
        index: usize,
        change: &'a FileChange,
        limit: u64,
    ) -> Result<std::result::Result<StagedChange<'a>, PatchCause>> {
        let path = change.path.as_str();
        let before = match self.read_whole(path, limit).await? {
            Ok(before) => Some(before),
            Err(EditRefused::File(refused)) if refused.code == NOT_FOUND => None,
            // It exists.
            Err(EditRefused::Content(_)) if matches!(change.action, FileAction::Create(_)) => {
                return Ok(Err(PatchCause::Exists));
            }
            Err(EditRefused::Content(error)) => return Ok(Err(PatchCause::Content(error.message()))),
            Err(EditRefused::File(refused)) => return Ok(Err(PatchCause::File(refused))),
        };
        let after = match (&change.action, &before) {
            (FileAction::Create(_), Some(_)) => return Ok(Err(PatchCause::Exists)),
            (FileAction::Create(content), None) => Some(content.clone()),
            (FileAction::Update(edit), Some((content, _))) => match edit(content) {
                Ok(content) => Some(content),
                Err(problem) => return Ok(Err(PatchCause::Content(problem))),
            },
            (FileAction::Delete, Some(_)) => None,
            (FileAction::Update(_) | FileAction::Delete, None) => {
                let refused = RefusedFile {
                    code: NOT_FOUND.to_owned(),
                    reason: "there is no such file".to_owned(),
                };
                return Ok(Err(PatchCause::File(refused)));
            }
        };
        if let Some(bytes) = after
            .as_ref()
            .map(|after| after.len() as u64)
            .filter(|bytes| *bytes > limit)
        {
            let error = EditError::TooLarge { bytes, limit };
            return Ok(Err(PatchCause::Content(error.message())));
        }
        Ok(Ok(StagedChange {
            index,
            path,
            before,
            after,
        }))
    }

    /// Writes all changes, or puts back those before the one that is refused.
    async fn commit(&mut self, staged: Vec<StagedChange<'_>>) -> Result<Outcome<()>> {
        for (place, change) in staged.iter().enumerate() {
            let stamp = change.before.as_ref().map(|before| before.1);
            let written = match &change.after {
                Some(content) => self.put_back(change.path, content.clone(), stamp).await?,
                None => self.delete(change.path, stamp).await?,
            };
            if let Err(refused) = written {
                let mut told = PatchRefused::new(change.index, PatchCause::File(refused));
                for done in staged[..place].iter().rev() {
                    let restored = match &done.before {
                        Some((content, _)) => self.put_back(done.path, content.clone(), None).await?,
                        None => self.delete(done.path, None).await?,
                    };
                    if restored.is_err() {
                        told.changed.push(done.path.to_owned());
                    }
                }
                return Ok(Err(told));
            }
        }
        Ok(Ok(()))
    }

    /// Deletes a file, if it is still the one with this stamp.
    async fn delete(
        &mut self,
        path: &str,
        expected: Option<FileStamp>,
    ) -> Result<std::result::Result<(), RefusedFile>> {
        let sandbox = self.sandbox.as_ref().ok_or(Error::Closed)?;
        if expected.is_some() {
            let found = match refusal(sandbox.guest().read_stamped(path, 0, 1).await)? {
                Ok((_, _, found)) => found,
                Err(refused) => return Ok(Err(refused)),
            };
            if found != expected {
                return Ok(Err(RefusedFile {
                    code: CHANGED.to_owned(),
                    reason: "the file was changed meanwhile".to_owned(),
                }));
            }
        }
        refusal(sandbox.guest().remove(path).await)
    }
}
