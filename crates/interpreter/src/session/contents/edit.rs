//! Writing and editing single files of the sandbox for a toolset.

use cellblock_protocol::{Blob, FileStamp};

use crate::error::{Error, Result};
use crate::session::contents::Contents;
use crate::session::contents::change::{Change, EditError};
use crate::session::journal::Journal;
use crate::session::runtime::Runtime;

/// Number of times that an edit starts over because the file was changed while it was at work.
pub(in crate::session) const TRIES: u32 = 3;
/// Word of a guest for a file that is not the one it was.
pub(in crate::session) const CHANGED: &str = "changed";

/// Refusal of a file by the sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RefusedFile {
    /// A word for it.
    pub(crate) code: String,
    /// Description of the problem.
    pub(crate) reason: String,
}

/// Result of an edit.
pub(crate) type EditOutcome = std::result::Result<(), EditRefused>;

/// Reason that a file was not edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EditRefused {
    /// It could not be read or written.
    File(RefusedFile),
    /// It does not hold what was to be replaced, or the like.
    Content(EditError),
}

impl Runtime {
    /// Replaces or makes a file in one step.
    pub(in crate::session) async fn replace_file(
        &mut self,
        contents: &mut Contents,
        journal: &mut Journal,
        path: &str,
        content: Vec<u8>,
    ) -> Result<std::result::Result<(), RefusedFile>> {
        self.settled(contents, journal).await?;
        self.has_files = true;
        self.put_back(path, content, None).await
    }

    /// Changes a file in one step, unless somebody else changes it all the time.
    pub(in crate::session) async fn edit_file(
        &mut self,
        contents: &mut Contents,
        journal: &mut Journal,
        path: &str,
        change: &Change,
    ) -> Result<EditOutcome> {
        self.settled(contents, journal).await?;
        let mut tries = 0;
        loop {
            tries += 1;
            let (content, stamp) = match self.read_whole(path, change.limit).await? {
                Ok(read) => read,
                Err(refused) => return Ok(Err(refused)),
            };
            let edited = match change.apply(&content) {
                Ok(edited) => edited,
                Err(error) => return Ok(Err(EditRefused::Content(error))),
            };
            match self.put_back(path, edited, Some(stamp)).await? {
                Ok(()) => return Ok(Ok(())),
                Err(refused) if refused.code == CHANGED && tries < TRIES => {}
                Err(refused) => return Ok(Err(EditRefused::File(refused))),
            }
        }
    }

    pub(in crate::session) async fn put_back(
        &mut self,
        path: &str,
        content: Vec<u8>,
        expected: Option<FileStamp>,
    ) -> Result<std::result::Result<(), RefusedFile>> {
        let sandbox = self.sandbox.as_ref().ok_or(Error::Closed)?;
        refusal(sandbox.guest().replace(path, content, expected).await)
    }

    /// Reads a file that has at most `limit` bytes.
    pub(in crate::session) async fn read_whole(
        &mut self,
        path: &str,
        limit: u64,
    ) -> Result<std::result::Result<(Vec<u8>, FileStamp), EditRefused>> {
        let sandbox = self.sandbox.as_ref().ok_or(Error::Closed)?;
        let mut content = Vec::new();
        let mut first: Option<FileStamp> = None;
        loop {
            let left = limit + 1 - content.len() as u64;
            let read = sandbox
                .guest()
                .read_stamped(path, content.len() as u64, left)
                .await;
            let (blob, eof, stamp) = match refusal(read)? {
                Ok(read) => read,
                Err(refused) => return Ok(Err(EditRefused::File(refused))),
            };
            let (Blob::Memory(bytes), Some(stamp)) = (blob, stamp) else {
                return Err(cellblock_sandbox::Error::protocol(
                    "guest",
                    "it read a file without saying which",
                )
                .into());
            };
            // What was read later belongs to the first part only if the file is still the same; the
            // write will tell.
            let stamp = *first.get_or_insert(stamp);
            if stamp.size > limit || content.len() as u64 + bytes.len() as u64 > limit {
                let bytes = stamp.size.max(content.len() as u64 + bytes.len() as u64);
                return Ok(Err(EditRefused::Content(EditError::TooLarge { bytes, limit })));
            }
            let moved = !bytes.is_empty();
            content.extend_from_slice(&bytes);
            if eof {
                return Ok(Ok((content, stamp)));
            }
            if !moved {
                return Err(
                    cellblock_sandbox::Error::protocol("guest", "a read neither moved on nor ended").into(),
                );
            }
        }
    }
}

/// Takes apart what the guest refused and what failed.
pub(in crate::session) fn refusal<T>(
    result: cellblock_sandbox::Result<T>,
) -> Result<std::result::Result<T, RefusedFile>> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(error) => match error.guest_refusal() {
            Some((code, reason)) => Ok(Err(RefusedFile {
                code: code.to_owned(),
                reason: reason.to_owned(),
            })),
            None => Err(error.into()),
        },
    }
}
