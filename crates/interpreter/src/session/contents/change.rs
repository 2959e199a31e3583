//! Exact replacement of one piece of text in a file's bytes.

use memchr::memmem::Finder;

/// Lines that are named where a piece is there more than once.
const LINES: usize = 10;

/// Text to replace, and its replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) old: Vec<u8>,
    pub(crate) new: Vec<u8>,
    /// Maximum number of bytes of the file, before and after.
    pub(crate) limit: u64,
}

/// Reason that a file's content cannot be edited as requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EditError {
    /// There is nothing to look for.
    Empty,
    /// It would change nothing.
    Same,
    /// The file is not text.
    Binary,
    /// The piece is not in it.
    NotFound,
    /// The piece is in it more than once.
    NotUnique {
        /// Number of occurrences; places that overlap count once, but never so that one is left.
        count: u64,
        /// The lines that the first of them begin in, from 1.
        lines: Vec<u64>,
    },
    /// The file is, or would become, too large.
    TooLarge {
        /// Its bytes.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
}

impl Change {
    /// Whether it can be made in any file at all.
    pub(crate) fn check(&self) -> Result<(), EditError> {
        if self.old.is_empty() {
            return Err(EditError::Empty);
        }
        if self.old == self.new {
            return Err(EditError::Same);
        }
        Ok(())
    }

    /// The content after the change: every byte but those of the one piece is as it was.
    pub(crate) fn apply(&self, content: &[u8]) -> Result<Vec<u8>, EditError> {
        self.check()?;
        if content.contains(&0) {
            return Err(EditError::Binary);
        }
        let finder = Finder::new(&self.old);
        let at = finder.find(content).ok_or(EditError::NotFound)?;
        // A second place may overlap the first: replacing either would be a guess.
        if let Some(second) = finder.find(&content[at + 1..]) {
            return Err(self.not_unique(content, at, at + 1 + second));
        }
        let bytes = (content.len() - self.old.len() + self.new.len()) as u64;
        if bytes > self.limit {
            return Err(EditError::TooLarge {
                bytes,
                limit: self.limit,
            });
        }
        let rest = &content[at + self.old.len()..];
        Ok([&content[..at], &self.new, rest].concat())
    }

    fn not_unique(&self, content: &[u8], first: usize, second: usize) -> EditError {
        let mut count = 0;
        let mut places = Vec::new();
        for at in memchr::memmem::find_iter(content, &self.old) {
            count += 1;
            if places.len() < LINES {
                places.push(at);
            }
        }
        if count < 2 {
            (count, places) = (2, vec![first, second]);
        }
        let mut lines = Vec::new();
        let (mut line, mut from) = (1, 0);
        for at in places {
            line += memchr::memchr_iter(b'\n', &content[from..at]).count() as u64;
            from = at;
            lines.push(line);
        }
        EditError::NotUnique { count, lines }
    }
}

impl EditError {
    /// The message for a model.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Empty => "old_string is empty. Give the exact text to replace.".into(),
            Self::Same => "old_string and new_string are equal: nothing would change.".into(),
            Self::Binary => "Cannot edit a binary file: it holds NUL bytes.".into(),
            Self::NotFound => "old_string not found in file".into(),
            Self::NotUnique { count, .. } => {
                format!("old_string found {count} times - not unique. Include more context.")
            }
            Self::TooLarge { bytes, limit } => format!("File too large: {bytes} bytes (max {limit})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn change(old: &[u8], new: &[u8]) -> Change {
        Change {
            old: old.to_vec(),
            new: new.to_vec(),
            limit: 100,
        }
    }

    #[test]
    fn line_ends_and_a_missing_last_one_survive() {
        let edited = change(b"b = 2", b"b = 3").apply(b"a = 1\r\nb = 2\r\nc").unwrap();
        assert_eq!(edited, b"a = 1\r\nb = 3\r\nc");
    }

    #[test]
    fn places_that_overlap_are_not_unique() {
        assert_eq!(
            change(b"aa", b"b").apply(b"x\naaa"),
            Err(EditError::NotUnique {
                count: 2,
                lines: vec![2, 2]
            })
        );
    }

    #[test]
    fn the_first_ten_lines_are_named() {
        let content = b"x\n".repeat(12);
        let lines = (1..=10).collect();
        assert_eq!(
            change(b"x", b"y").apply(&content),
            Err(EditError::NotUnique { count: 12, lines })
        );
    }

    #[test]
    fn impossible_changes_are_rejected() {
        assert_eq!(change(b"", b"y").apply(b"x"), Err(EditError::Empty));
        assert_eq!(change(b"x", b"x").apply(b"x"), Err(EditError::Same));
        assert_eq!(change(b"x", b"y").apply(b"x\0"), Err(EditError::Binary));
        assert_eq!(change(b"x", b"y").apply(b""), Err(EditError::NotFound));
        assert_eq!(
            change(b"x", &[b'y'; 101]).apply(b"x"),
            Err(EditError::TooLarge {
                bytes: 101,
                limit: 100
            })
        );
    }

    #[test]
    fn a_file_of_repetitions_is_searched_in_little_time() {
        let content = vec![b'a'; 5 << 20];
        let mut old = vec![b'a'; 2 << 20];
        old.push(b'b');
        let change = Change {
            old,
            new: Vec::new(),
            limit: 5 << 20,
        };
        assert_eq!(change.apply(&content), Err(EditError::NotFound));
    }

    /// The model: look at every place.
    fn places(content: &[u8], old: &[u8]) -> Vec<usize> {
        (0..content.len())
            .filter(|at| content[*at..].starts_with(old))
            .collect()
    }

    proptest! {
        #[test]
        fn an_edit_matches_the_model(
            content in "[ab\r\n]{0,24}",
            old in "[ab\r\n]{0,3}",
            new in "[abc\r\n]{0,4}",
        ) {
            let (content, old, new) = (content.as_bytes(), old.as_bytes(), new.as_bytes());
            let found = places(content, old);
            let result = change(old, new).apply(content);
            if old.is_empty() {
                prop_assert_eq!(result, Err(EditError::Empty));
            } else if old == new {
                prop_assert_eq!(result, Err(EditError::Same));
            } else if let [at] = found[..] {
                let expected = [&content[..at], new, &content[at + old.len()..]].concat();
                prop_assert_eq!(result, Ok(expected));
            } else if found.is_empty() {
                prop_assert_eq!(result, Err(EditError::NotFound));
            } else {
                let Err(EditError::NotUnique { count, lines }) = result else {
                    return Err(TestCaseError::fail("a guess"));
                };
                prop_assert!(count >= 2 && count <= found.len() as u64);
                let first = memchr::memchr_iter(b'\n', &content[..found[0]]).count() as u64;
                prop_assert_eq!(lines[0], first + 1);
                prop_assert_eq!(lines.len() as u64, count.min(10));
                prop_assert!(lines.is_sorted());
            }
        }
    }
}
