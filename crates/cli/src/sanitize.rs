//! Makes text from a sandbox harmless for a terminal.
//!
//! A terminal obeys control characters: it moves the cursor, retitles windows, answers queries as
//! if the user had typed, and shows text in another order than it is stored. Everything but newline
//! and tab is therefore shown as an escape, and so are bytes that are not UTF-8.

use std::fmt::Write as _;

use cellblock_interpreter::text::acts;

/// Text of several lines: newlines and tabs are kept, a carriage return before a newline is dropped.
pub(crate) fn text(text: &str) -> String {
    let mut stream = SanitizedStream::default();
    let mut safe = stream.push(text.as_bytes());
    safe.push_str(&stream.finish());
    safe
}

/// Text of one line, such as a name or a cell of a table: newlines and tabs are escaped as well.
pub(crate) fn line(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        escape(c, &mut safe);
    }
    safe
}

/// JSON whose strings hold nothing that a terminal obeys. Equal when parsed.
pub(crate) fn json(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for c in json.chars() {
        // Compact JSON has control characters only inside strings, where an escape stands for the
        // same character.
        if acts(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(c);
        }
    }
    safe
}

fn escape(c: char, into: &mut String) {
    match c {
        '\n' => into.push_str("\\n"),
        '\t' => into.push_str("\\t"),
        '\r' => into.push_str("\\r"),
        c if acts(c) && u32::from(c) <= 0xff => {
            let _ = write!(into, "\\x{:02x}", u32::from(c));
        }
        c if acts(c) => {
            let _ = write!(into, "\\u{{{:x}}}", u32::from(c));
        }
        c => into.push(c),
    }
}

/// Sanitises a stream that comes in pieces, which may end anywhere, also inside a character.
#[derive(Debug, Default)]
pub(crate) struct SanitizedStream {
    /// The beginning of a character whose rest has not come yet; at most 3 bytes.
    partial: Vec<u8>,
    /// A carriage return has come whose meaning depends on what follows.
    returned: bool,
}

impl SanitizedStream {
    /// Takes a piece and gives what can be shown of it by now.
    pub(crate) fn push(&mut self, piece: &[u8]) -> String {
        let joined;
        let mut bytes = piece;
        if !self.partial.is_empty() {
            self.partial.extend_from_slice(piece);
            joined = std::mem::take(&mut self.partial);
            bytes = &joined;
        }
        let mut safe = String::with_capacity(bytes.len());
        let mut rest = bytes;
        while !rest.is_empty() {
            let (valid, invalid, next) = match std::str::from_utf8(rest) {
                Ok(valid) => (valid, &rest[..0], &rest[..0]),
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    let valid = std::str::from_utf8(valid).unwrap_or_default();
                    if let Some(length) = error.error_len() {
                        (valid, &after[..length], &after[length..])
                    } else {
                        self.partial = after.to_vec();
                        (valid, &rest[..0], &rest[..0])
                    }
                }
            };
            self.show(valid, &mut safe);
            self.show_bytes(invalid, &mut safe);
            rest = next;
        }
        safe
    }

    /// Ends the stream and gives what was held back.
    pub(crate) fn finish(&mut self) -> String {
        let mut safe = String::new();
        let partial = std::mem::take(&mut self.partial);
        self.show_bytes(&partial, &mut safe);
        self.show_return(&mut safe);
        safe
    }

    fn show(&mut self, text: &str, into: &mut String) {
        for c in text.chars() {
            if c == '\n' {
                self.returned = false;
            }
            self.show_return(into);
            match c {
                '\n' | '\t' => into.push(c),
                '\r' => self.returned = true,
                c => escape(c, into),
            }
        }
    }

    fn show_bytes(&mut self, bytes: &[u8], into: &mut String) {
        for byte in bytes {
            self.show_return(into);
            let _ = write!(into, "\\x{byte:02x}");
        }
    }

    fn show_return(&mut self, into: &mut String) {
        if std::mem::take(&mut self.returned) {
            into.push_str("\\r");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_text_of_any_script_is_kept() {
        let kept = "naïve\tπ ≈ 3.14\n日本語 🦀 العربية\n";
        assert_eq!(text(kept), kept);
    }

    #[test]
    fn ansi_sequences_are_shown_and_not_obeyed() {
        assert_eq!(text("\x1b[31mred\x1b[0m"), "\\x1b[31mred\\x1b[0m");
        assert_eq!(text("\x1b]0;title\x07"), "\\x1b]0;title\\x07");
        assert_eq!(text("\u{9b}31m"), "\\x9b31m");
    }

    #[test]
    fn a_backspace_cannot_hide_text() {
        assert_eq!(text("rm -rf /\x08\x08 ok\x7f"), "rm -rf /\\x08\\x08 ok\\x7f");
    }

    #[test]
    fn marks_that_reorder_text_are_shown() {
        assert_eq!(text("a\u{202e}b\u{2066}c"), "a\\u{202e}b\\u{2066}c");
    }

    #[test]
    fn a_carriage_return_is_shown_unless_it_ends_a_line() {
        assert_eq!(text("50 %\r100 %\r\ndone\r"), "50 %\\r100 %\ndone\\r");
    }

    #[test]
    fn one_line_stays_one_line() {
        assert_eq!(line("a\nb\tc\r"), "a\\nb\\tc\\r");
    }

    #[test]
    fn bytes_that_are_not_text_are_shown_as_numbers() {
        let mut stream = SanitizedStream::default();
        assert_eq!(stream.push(b"a\xffb\xc3("), "a\\xffb\\xc3(");
        assert_eq!(stream.push(b"\xe2\x82"), "");
        assert_eq!(stream.finish(), "\\xe2\\x82");
    }

    #[test]
    fn any_split_of_a_stream_gives_the_same_text() {
        let bytes = "é\x1b[1m\r\n€\u{202e}🦀\rx\u{fffd}".as_bytes();
        let mut hostile = bytes.to_vec();
        hostile.extend(b"\xf0\x9f\x41\xed\xa0\x80\r\xc0\xaf\xf0\x9f");
        let whole = in_pieces(&hostile, hostile.len());
        assert!(!whole.chars().any(|c| acts(c) && c != '\n'));
        for size in 1..hostile.len() {
            assert_eq!(in_pieces(&hostile, size), whole, "pieces of {size}");
        }
    }

    fn in_pieces(bytes: &[u8], size: usize) -> String {
        let mut stream = SanitizedStream::default();
        let mut safe: String = bytes.chunks(size).map(|piece| stream.push(piece)).collect();
        safe.push_str(&stream.finish());
        safe
    }

    #[test]
    fn json_is_harmless_and_means_the_same() {
        let value = serde_json::json!({ "a": "\u{9b}31m\u{202e}\x7f\u{e0041}\x1b\n" });
        let safe = json(&value.to_string());
        assert!(!safe.chars().any(acts), "{safe}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), value);
    }
}
