//! The separator of a text file with fields, found from its beginning.

/// Separators that are looked for, the usual one first.
const KNOWN: [u8; 4] = *b",;\t|";
/// Lines that are looked at.
const LINES: usize = 50;

/// Beginning of the table of a text, and its separator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextLayout {
    /// Bytes before the header: those of a line `sep=;`.
    pub skipped: usize,
    /// The separator, a comma unless only another one gives a table.
    pub separator: u8,
}

impl TextLayout {
    /// Finds the layout from the first bytes of a text. Its last line may be cut.
    pub fn of(head: &[u8]) -> Self {
        let line = head
            .split_inclusive(|byte| *byte == b'\n')
            .next()
            .unwrap_or_default();
        if let [b's', b'e', b'p', b'=', separator, b'\n']
        | [b's', b'e', b'p', b'=', separator, b'\r', b'\n'] = line
        {
            return Self {
                skipped: line.len(),
                separator: *separator,
            };
        }
        let whole = head.iter().rposition(|byte| *byte == b'\n').unwrap_or(head.len());
        let lines = head[..whole].split(|byte| *byte == b'\n');
        let lines: Vec<_> = lines
            .filter(|line| !matches!(line, [] | [b'\r']))
            .take(LINES)
            .collect();
        let separator = KNOWN.into_iter().find(|separator| is_even(&lines, *separator));
        Self {
            skipped: 0,
            separator: separator.unwrap_or(b','),
        }
    }
}

/// Returns whether a separator gives a header of some names, and rows that are as long.
fn is_even(lines: &[&[u8]], separator: u8) -> bool {
    let Some((header, rows)) = lines.split_first() else {
        return false;
    };
    let expected = count(header, separator);
    expected > 0 && rows.iter().all(|row| count(row, separator) == expected)
}

/// Counts separators outside of quotes.
fn count(line: &[u8], separator: u8) -> usize {
    let mut quoted = false;
    let mut found = 0;
    for byte in line {
        quoted ^= *byte == b'"';
        found += usize::from(*byte == separator && !quoted);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_separator_other_than_a_comma_is_found_only_if_it_alone_gives_a_table() {
        for (head, separator) in [
            ("a,b\n1,2\n", b','),
            ("a;b\n1,5;2\n3;4\n", b';'),
            ("a\tb\r\n1\t2\r\n", b'\t'),
            ("a|b\n1|2\n", b'|'),
            ("a;b\n1;2\n3;", b';'),
            ("a;b", b';'),
            ("id,lat;lon\n1,5;6\n", b','),
            ("text\na;b\nc;d\n", b','),
            ("name;note\nx;\"a;b\"\n", b';'),
            ("", b','),
        ] {
            let layout = TextLayout::of(head.as_bytes());
            assert_eq!((layout.skipped, layout.separator), (0, separator), "{head:?}");
        }
        for head in ["sep=;\na;b\n", "sep=;\r\na;b\r\n"] {
            let layout = TextLayout::of(head.as_bytes());
            assert_eq!(layout.separator, b';');
            assert!(head[layout.skipped..].starts_with("a;b"));
        }
    }
}
