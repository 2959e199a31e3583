//! The `Range` header, where it asks for one piece.

use std::ops::Range;

/// Result of parsing a request's range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AskedRange {
    /// All bytes: there is no range, or one that servers may ignore.
    Whole,
    /// These bytes.
    Part(Range<u64>),
    /// Bytes that are not there.
    Beyond,
}

/// Reads a header's value for something of so many bytes.
pub(super) fn read(value: Option<&str>, bytes: u64) -> AskedRange {
    let Some(range) = value.and_then(|value| value.trim().strip_prefix("bytes=")) else {
        return AskedRange::Whole;
    };
    let Some((first, last)) = range.split_once('-') else {
        return AskedRange::Whole;
    };
    let number = |text: &str| text.trim().parse::<u64>();
    let part = match (first.trim(), last.trim()) {
        ("", suffix) => match number(suffix) {
            Ok(count) => bytes.saturating_sub(count)..bytes,
            Err(_) => return AskedRange::Whole,
        },
        (first, "") => match number(first) {
            Ok(first) => first..bytes,
            Err(_) => return AskedRange::Whole,
        },
        (first, last) => match (number(first), number(last)) {
            (Ok(first), Ok(last)) if first <= last => first..last.saturating_add(1).min(bytes),
            _ => return AskedRange::Whole,
        },
    };
    if part.start >= part.end {
        return AskedRange::Beyond;
    }
    AskedRange::Part(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_piece_is_read_and_several_are_ignored() {
        for (value, asked) in [
            ("bytes=0-3", AskedRange::Part(0..4)),
            ("bytes=4-", AskedRange::Part(4..10)),
            ("bytes=-3", AskedRange::Part(7..10)),
            ("bytes=-30", AskedRange::Part(0..10)),
            ("bytes=8-99", AskedRange::Part(8..10)),
            ("bytes=10-", AskedRange::Beyond),
            ("bytes=-0", AskedRange::Beyond),
            ("bytes=0-1,3-4", AskedRange::Whole),
            ("bytes=3-1", AskedRange::Whole),
            ("lines=0-1", AskedRange::Whole),
            (
                "bytes=18446744073709551615-18446744073709551615",
                AskedRange::Beyond,
            ),
        ] {
            assert_eq!(read(Some(value), 10), asked, "{value}");
        }
        assert_eq!(read(None, 10), AskedRange::Whole);
        assert_eq!(read(Some("bytes=0-"), 0), AskedRange::Beyond);
    }
}
