//! Text of other parties in our messages.

use cellblock_interpreter::text::or_space;

/// Formats a text on one line without special characters, cut after `most` characters.
pub fn short_line(text: &str, most: usize) -> String {
    let shown = text.trim().chars().map(or_space);
    let mut short: String = shown.clone().take(most).collect();
    if shown.count() > most {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_short_and_harmless() {
        assert_eq!(short_line(" a\nb\u{1b}[31m\u{202e}c ", 20), "a b [31m c");
        assert_eq!(short_line("ééé", 2), "éé…");
        assert_eq!(short_line("éé", 2), "éé");
    }
}
