//! Text without characters that do something: colours, cursor movements, reversed writing.

use std::fmt::Write;

use cellblock_protocol::text::acts;

/// Keeps lines; escapes everything else that is not visible.
pub(crate) fn lines(text: &str) -> String {
    escape(text, |character| matches!(character, '\n' | '\t'))
}

/// Escapes line ends too.
pub(crate) fn line(text: &str) -> String {
    escape(text, |_| false)
}

fn escape(text: &str, keep: impl Fn(char) -> bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if keep(character) || !acts(character) {
            escaped.push(character);
        } else {
            // Writing to a string does not fail.
            let _ = write!(escaped, "{}", character.escape_default());
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acting_characters_are_escaped_and_others_kept() {
        assert_eq!(lines("a\u{1b}[31m\tñ\r\nb"), "a\\u{1b}[31m\tñ\\r\nb");
        assert_eq!(line("a\nb\u{202e}c"), "a\\nb\\u{202e}c");
        assert_eq!(line("👩\u{200d}🔬 日本"), "👩\u{200d}🔬 日本");
    }
}
