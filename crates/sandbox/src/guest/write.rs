//! Writing files of the sandbox.

use std::io::Read;

use cellblock_protocol::{FileStamp, ToGuest};

use super::{ANSWER_LIMIT, Guest, answered_within};
use crate::error::{Error, Result, SandboxErrorKind};

/// Maximum number of file bytes in one frame.
const CHUNK: usize = 1024 * 1024;
/// Maximum size in bytes of a file that is replaced in one step.
pub const MAX_REPLACE: usize = 8 * 1024 * 1024;

impl Guest {
    /// Writes a file from a reader in parts and creates its parent directories. `mode` must let the
    /// owner write, as later parts are appended.
    pub async fn write(&self, path: &str, mode: u32, mut content: impl Read + Send) -> Result<u64> {
        let mut written = 0;
        let result = self.write_parts(path, mode, &mut content, &mut written).await;
        if result.is_err() && written > 0 {
            // Half a file could be mistaken for a whole one.
            let _ = self.remove(path).await;
        }
        result.map(|()| written)
    }

    /// Writes part after part, and counts the bytes. The guest writes one while the next is read,
    /// except for the first: until there is the answer to that, the file is not ours.
    async fn write_parts(
        &self,
        path: &str,
        mode: u32,
        content: &mut (impl Read + Send),
        written: &mut u64,
    ) -> Result<()> {
        let mut before = None;
        loop {
            let mut part = Vec::with_capacity(CHUNK);
            Read::take(&mut *content, CHUNK as u64)
                .read_to_end(&mut part)
                .map_err(|source| SandboxErrorKind::Io {
                    action: "read an input",
                    source,
                })?;
            let (append, length) = (*written > 0, part.len());
            if !append || length > 0 {
                let message = ToGuest::Write {
                    request: 0,
                    path: path.to_owned(),
                    mode,
                    append,
                    keep: false,
                    expect: None,
                };
                let answered = self.request(message, Some(part)).await?;
                if let Some(before) = before.replace(answered) {
                    answered_within(before, ANSWER_LIMIT, "write", path).await?;
                }
            }
            let last = length < CHUNK;
            if (last || !append)
                && let Some(answered) = before.take()
            {
                answered_within(answered, ANSWER_LIMIT, "write", path).await?;
            }
            *written += length as u64;
            if last {
                return Ok(());
            }
        }
    }

    /// Replaces or creates a file in one step, at most [`MAX_REPLACE`] bytes, with its parent
    /// directories. An existing regular file keeps its mode; anything else is rejected, and so is a
    /// file that differs from the `expected` one.
    pub async fn replace(&self, path: &str, content: Vec<u8>, expected: Option<FileStamp>) -> Result<()> {
        if content.len() > MAX_REPLACE {
            return Err(Error::request(format!(
                "replace `{path}` in the sandbox: it would have {} bytes, the limit is {MAX_REPLACE}",
                content.len()
            )));
        }
        let message = ToGuest::Write {
            request: 0,
            path: path.to_owned(),
            mode: 0o644,
            append: false,
            keep: true,
            expect: expected,
        };
        self.ask(message, Some(content), "write", path).await.map(drop)
    }
}
