//! Snapshots of the files of a sandbox.

use cellblock_protocol::{FileDifference, FromGuest, ToGuest};

use super::{Guest, unexpected};
use crate::error::Result;

impl Guest {
    /// Saves a snapshot of `/workspace` and `/tmp` except for datasets, and copies at most `limit` bytes for it. Returns its number of
    /// files, and of bytes that were copied. Nothing may run in the sandbox meanwhile.
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
}
