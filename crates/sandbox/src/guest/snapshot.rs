//! Snapshots of the files of a sandbox.

use std::io::Read;

use cellblock_protocol::{FileDifference, FromGuest, ToGuest};

use super::{AnswerSender, Guest, unexpected};
use crate::error::{DuringIo, Result};

/// Number of bytes of a snapshot that are copied at once.
const PART: u64 = 4 << 20;

impl Guest {
    /// Saves a snapshot of `/workspace` and `/tmp` except for datasets, and copies at most `limit`
    /// bytes for it. Returns its number of files, and of bytes that were copied. Nothing may run in
    /// the sandbox meanwhile.
    pub async fn save(&self, snapshot: u64, limit: u64) -> Result<(u64, u64)> {
        let message = ToGuest::Save {
            request: 0,
            snapshot,
            limit,
        };
        match self
            .ask(message, None, "save the files below", "/")
            .await?
            .message
        {
            FromGuest::Saved { files, bytes, .. } => Ok((files, bytes)),
            _ => Err(unexpected()),
        }
    }

    /// Makes the files equal to a snapshot. Nothing may run in the sandbox meanwhile.
    pub async fn restore(&self, snapshot: u64) -> Result<()> {
        let message = ToGuest::Restore { request: 0, snapshot };
        self.ask(message, None, "restore the files below", "/")
            .await
            .map(drop)
    }

    /// Stops every process except the guest and some others, and makes the files equal to a
    /// snapshot. Returns whether it did: if the process that is `needed` to go on with them has
    /// ended, or was stopped or sent a signal, nothing is done. The stopped ones wait for
    /// [`Self::kill_stopped`].
    pub async fn roll_back(&self, snapshot: u64, needed: u32, except: &[u32]) -> Result<bool> {
        let message = ToGuest::RollBack {
            request: 0,
            snapshot,
            needed,
            except: except.to_vec(),
        };
        match self.ask(message, None, "restore the files below", "/").await {
            Ok(_) => Ok(true),
            Err(error) if error.guest_refusal().is_some_and(|(code, _)| code == "gone") => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Kills the processes that a rollback has stopped, once it needs the processors no more; does
    /// not wait for their end.
    pub async fn kill_stopped(&self) -> Result<()> {
        self.send(ToGuest::KillStopped, None, AnswerSender::None)
            .await
            .map(drop)
    }

    /// Returns what differs from a snapshot: at most `most` of the differences, and their number.
    pub async fn changes(&self, snapshot: u64, most: u32) -> Result<(Vec<FileDifference>, u64)> {
        let message = ToGuest::Changes {
            request: 0,
            snapshot,
            most,
        };
        match self
            .ask(message, None, "compare the files below", "/")
            .await?
            .message
        {
            FromGuest::Changes { mut found, total, .. } => {
                found.truncate(most as usize);
                Ok((found, total))
            }
            _ => Err(unexpected()),
        }
    }

    /// Removes a snapshot.
    pub async fn discard(&self, snapshot: u64) -> Result<()> {
        let message = ToGuest::Discard { request: 0, snapshot };
        self.ask(message, None, "remove the snapshot of", "/")
            .await
            .map(drop)
    }

    /// Copies a snapshot into the guests of other sandboxes, part by part. `limit` is the maximum
    /// number of bytes of its files.
    pub async fn copy_snapshot(&self, snapshot: u64, others: &[(&Self, u64)], limit: u64) -> Result<()> {
        let mut offset = 0;
        loop {
            let message = ToGuest::ReadSnapshot {
                request: 0,
                snapshot,
                offset,
                length: PART,
            };
            let mut frame = self.ask(message, None, "read the snapshot of", "/").await?;
            let FromGuest::Content { eof, .. } = frame.message else {
                return Err(unexpected());
            };
            let mut part = Vec::new();
            if let Some(blob) = frame.blobs.pop() {
                blob.reader()
                    .read_to_end(&mut part)
                    .during("read a part of a snapshot")?;
            }
            offset += part.len() as u64;
            // A guest that never ends would fill the others.
            if (part.is_empty() && !eof) || offset > limit {
                return Err(unexpected());
            }
            for (other, number) in others {
                let message = ToGuest::WriteSnapshot {
                    request: 0,
                    snapshot: *number,
                    last: eof,
                };
                other
                    .ask(message, Some(part.clone()), "write the snapshot of", "/")
                    .await?;
            }
            if eof {
                return Ok(());
            }
        }
    }
}
