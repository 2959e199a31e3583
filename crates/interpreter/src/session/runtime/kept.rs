//! A command's stream: its beginning and its end for the model, and the whole for a file in the sandbox.

use std::collections::VecDeque;
use std::io::{Seek, Write};

use tempfile::SpooledTempFile;

use crate::execution::StreamText;
use crate::render::redraw::{LEFT_OUT, Redraws};
use crate::session::contents::Contents;
use crate::session::runtime::Runtime;
use crate::stream::Capture;

/// Bytes of a stream that are held in memory before they go to a file of the host.
const IN_MEMORY: usize = 256 * 1024;
/// Bytes that the line in the middle may take.
const MARK: usize = 240;
/// Directory of whole streams in the sandbox.
const FOLDER: &str = "/tmp/.cellblock";
/// Bytes of whole streams that are kept in the sandbox, all together; the oldest go first.
const KEPT_BYTES: u64 = 128 << 20;

/// A stream as it comes.
#[derive(Debug)]
pub(in crate::session) struct StreamCapture {
    limit: usize,
    total: u64,
    /// Its beginning and its end.
    ends: Capture,
    /// Redraws to apply, for a text that a model reads.
    redraws: Option<Redraws>,
    whole: SpooledTempFile,
    /// Whether the whole could not be kept on the host.
    lost: bool,
}

/// Whole streams that the sandbox has, the oldest first.
#[derive(Debug, Default)]
pub(in crate::session) struct WholeStreams(VecDeque<(String, u64)>);

impl StreamCapture {
    /// Answers at most `limit` bytes of it, the line in the middle included. A `view` is what a
    /// model reads: as it stands after its redraws, with the whole in a file of the sandbox if it
    /// is longer.
    pub(in crate::session) fn new(limit: usize, view: bool) -> Self {
        Self {
            limit,
            total: 0,
            ends: Capture::new(limit as u64),
            redraws: view.then(Redraws::whole),
            whole: SpooledTempFile::new(IN_MEMORY),
            lost: false,
        }
    }

    pub(in crate::session) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let Some(redraws) = &mut self.redraws else {
            return self.ends.push(bytes);
        };
        let mut drawn = Vec::new();
        redraws.push(bytes, &mut drawn);
        self.ends.push(&drawn);
        self.lost |= self.whole.write_all(bytes).is_err();
    }

    pub(in crate::session) fn total(&self) -> u64 {
        self.total
    }
}

impl Runtime {
    /// Makes a text of a stream. A view keeps the whole of it in the sandbox if it is too long.
    pub(in crate::session) async fn finish_stream(
        &mut self,
        contents: &mut Contents,
        mut kept: StreamCapture,
        name: &str,
    ) -> StreamText {
        let view = kept.redraws.is_some();
        if let Some(mut redraws) = kept.redraws.take() {
            let mut drawn = Vec::new();
            redraws.finish(&mut drawn);
            kept.ends.push(&drawn);
        }
        let (limit, bytes, total) = (kept.limit, kept.total, kept.ends.total());
        let (mut head, tail) = kept.ends.take();
        if (head.len() + tail.len()) as u64 == total {
            head.extend(tail);
            return StreamText {
                text: String::from_utf8_lossy(&head).into_owned(),
                truncated: false,
                bytes,
            };
        }
        let half = limit.saturating_sub(MARK) / 2;
        let head = whole_start(&head[..half.min(head.len())]);
        let tail = whole_end(&tail[tail.len().saturating_sub(half)..]);
        let left_out = total - (head.len() + tail.len()) as u64;
        let place = if view {
            let path = format!("{FOLDER}/exec-{}.{name}", contents.commands);
            format!(
                "; {}",
                self.keep_whole(contents, kept.whole, kept.lost, bytes, &path)
                    .await
            )
        } else {
            String::new()
        };
        let text = format!(
            "{}\n{LEFT_OUT}{left_out} of {total} bytes left out{place} …]\n{}",
            String::from_utf8_lossy(head),
            String::from_utf8_lossy(tail)
        );
        StreamText {
            text,
            truncated: true,
            bytes,
        }
    }

    /// Writes a whole stream to a file of the sandbox; answers what to say of it.
    async fn keep_whole(
        &mut self,
        contents: &mut Contents,
        mut whole: SpooledTempFile,
        lost: bool,
        bytes: u64,
        path: &str,
    ) -> String {
        let Some(sandbox) = &self.sandbox else {
            return "the rest is gone with the sandbox".to_owned();
        };
        if lost || whole.rewind().is_err() {
            return "the rest could not be kept".to_owned();
        }
        while contents.whole.bytes() + bytes > KEPT_BYTES {
            let Some((oldest, _)) = contents.whole.0.pop_front() else {
                break;
            };
            let _ = sandbox.guest().remove(&oldest).await;
        }
        match sandbox.guest().write(path, 0o644, whole).await {
            Ok(bytes) => {
                contents.whole.0.push_back((path.to_owned(), bytes));
                format!("all of it is in {path}")
            }
            Err(error) => {
                tracing::info!(
                    error = &error as &dyn std::error::Error,
                    "could not keep a command's output"
                );
                let _ = sandbox.guest().remove(path).await;
                "the rest could not be kept in the sandbox".to_owned()
            }
        }
    }
}

impl WholeStreams {
    fn bytes(&self) -> u64 {
        self.0.iter().map(|(_, bytes)| bytes).sum()
    }
}

/// Without a character that is cut at the end.
pub(in crate::session) fn whole_start(bytes: &[u8]) -> &[u8] {
    let cut = bytes.len().saturating_sub(3);
    for at in (cut..bytes.len()).rev() {
        let wanted = match bytes[at] {
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf7 => 4,
            0x80..=0xbf => continue,
            _ => break,
        };
        return if at + wanted > bytes.len() {
            &bytes[..at]
        } else {
            bytes
        };
    }
    bytes
}

/// Without a character that is cut at the beginning.
fn whole_end(bytes: &[u8]) -> &[u8] {
    let cut = bytes
        .iter()
        .take(3)
        .take_while(|byte| (0x80..=0xbf).contains(*byte))
        .count();
    &bytes[cut..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_is_cut_in_two() {
        let text = "aé€😀";
        for end in 0..=text.len() {
            let start = whole_start(&text.as_bytes()[..end]);
            assert!(std::str::from_utf8(start).is_ok(), "{end}");
            assert!(end - start.len() <= 3, "{end}");
            let rest = whole_end(&text.as_bytes()[end..]);
            assert!(std::str::from_utf8(rest).is_ok(), "{end}");
        }
        assert_eq!(whole_start("aé".as_bytes()), "aé".as_bytes());
        assert_eq!(whole_start(b"\xff\xff"), b"\xff\xff");
    }
}
