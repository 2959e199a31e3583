//! Bytes of a stream as text.

/// Makes text of bytes as they come. A character that is not complete waits for its rest; bytes
/// that are not UTF-8 are replaced.
#[derive(Debug, Default)]
pub(crate) struct TextDecoder(Vec<u8>);

impl TextDecoder {
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        self.0.extend_from_slice(bytes);
        let whole = whole(&self.0);
        let text = String::from_utf8_lossy(&self.0[..whole]).into_owned();
        self.0.drain(..whole);
        text
    }

    /// Returns what is left.
    pub(crate) fn rest(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.0)).into_owned()
    }
}

/// Counts the bytes before a character that is not complete.
fn whole(bytes: &[u8]) -> usize {
    let from = bytes.len().saturating_sub(3);
    let cut = (from..bytes.len()).find(|&at| {
        std::str::from_utf8(&bytes[at..])
            .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    });
    cut.unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_comes_through_whole_wherever_it_is_cut() {
        let all = "aé€😀\nz";
        for cut in 0..=all.len() {
            let (one, other) = all.as_bytes().split_at(cut);
            let mut decoder = TextDecoder::default();
            let text = decoder.push(one) + &decoder.push(other) + &decoder.rest();
            assert_eq!(text, all, "{cut}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        let mut decoder = TextDecoder::default();
        assert_eq!(decoder.push(b"a\xffb"), "a\u{fffd}b");
        assert_eq!(decoder.push(b"\xf0\x9f"), "");
        assert_eq!(decoder.rest(), "\u{fffd}");
    }
}
