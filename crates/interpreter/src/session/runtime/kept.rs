//! A command's stream at its end: its beginning and its end for the model, and the whole for a file in the
//! sandbox.

use std::io::Seek;

use tempfile::SpooledTempFile;

use crate::execution::StreamText;
use crate::render::redraw::LEFT_OUT;
use crate::session::contents::Contents;
use crate::session::runtime::Runtime;
use crate::session::runtime::capture::{StreamCapture, whole_end, whole_start};

/// Bytes that the line in the middle may take.
const MARK: usize = 240;
/// Directory of whole streams in the sandbox.
const FOLDER: &str = "/tmp/.cellblock";
/// Bytes of whole streams that are kept in the sandbox, all together; the oldest go first.
const KEPT_BYTES: u64 = 128 << 20;

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
