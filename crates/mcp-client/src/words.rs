//! Text of other parties in our messages: short, on one line, without special characters.

pub(super) use cellblock_connector::short_line as told;
use cellblock_interpreter::text::counted;
use cellblock_interpreter::text::or_space;

/// Maximum number of a server's characters in a message.
pub(super) const MOST: usize = 500;

/// Formats a text with its lines, cut after `most` characters.
pub(super) fn told_lines(text: &str, most: usize) -> String {
    let lines: Vec<_> = text.trim().lines().collect();
    let kept = |line: &&str| {
        line.chars()
            .map(|it| if it == '\t' { it } else { or_space(it) })
            .collect::<String>()
    };
    let whole = lines.iter().map(kept).collect::<Vec<_>>().join("\n");
    let length = whole.chars().count();
    if length <= most {
        return whole;
    }
    let cut: String = whole.chars().take(most).collect();
    format!("{cut}… ({} more)", counted(length - most, "character"))
}

/// Formats a size in the largest unit without a fraction.
pub(super) fn bytes(bytes: u64) -> String {
    match bytes {
        0 => counted(0_u64, "byte"),
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => counted(bytes, "byte"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_short_and_harmless() {
        assert_eq!(told_lines("a\u{1b}b\r\n\tc\n", 20), "a b\n\tc");
        assert_eq!(told_lines("abcdef", 4), "abcd… (2 characters more)");
    }

    #[test]
    fn sizes_have_the_largest_exact_unit() {
        assert_eq!(bytes(32 << 20), "32 MiB");
        assert_eq!(bytes(1536), "1536 bytes");
        assert_eq!(bytes(2 << 10), "2 KiB");
        assert_eq!(bytes(0), "0 bytes");
    }
}
