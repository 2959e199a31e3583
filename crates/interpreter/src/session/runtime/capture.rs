//! A command's stream while it comes.

use std::collections::VecDeque;
use std::io::Write;

use tempfile::SpooledTempFile;

use crate::render::redraw::Redraws;
use crate::stream::Capture;

/// Bytes of a stream that are held in memory before they go to a file of the host.
const IN_MEMORY: usize = 256 * 1024;

/// A stream as it comes.
#[derive(Debug)]
pub(in crate::session) struct StreamCapture {
    pub(super) limit: usize,
    pub(super) total: u64,
    /// Its beginning and its end.
    pub(super) ends: Capture,
    /// Redraws to apply, for a text that a model reads.
    pub(super) redraws: Option<Redraws>,
    pub(super) whole: SpooledTempFile,
    /// Whether the whole could not be kept on the host.
    pub(super) lost: bool,
}

/// Whole streams that the sandbox has, the oldest first.
#[derive(Debug, Default)]
pub(in crate::session) struct WholeStreams(pub(super) VecDeque<(String, u64)>);

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

impl WholeStreams {
    pub(super) fn bytes(&self) -> u64 {
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
pub(super) fn whole_end(bytes: &[u8]) -> &[u8] {
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
