//! A search for the files that match a pattern: which folders it enters, what it finds, and where it ends.

use glob::{MatchOptions, Pattern};

/// Maximum number of files and folders that one search looks at.
const ENTRIES: usize = 100_000;
const MATCHING: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// A search in a folder or an object store.
pub(super) struct Search<'a> {
    pattern: &'a Pattern,
    parts: Vec<&'a str>,
    seen: usize,
}

impl<'a> Search<'a> {
    pub(super) fn new(pattern: &'a Pattern) -> Self {
        let parts = pattern.as_str().split('/').collect();
        Self {
            pattern,
            parts,
            seen: 0,
        }
    }

    /// Returns the folder that all matching files are below; empty for the root.
    pub(super) fn start(&self) -> String {
        let fixed = self.parts.iter().take(self.parts.len() - 1);
        let fixed = fixed.take_while(|part| !part.contains(['*', '?', '[']));
        fixed.copied().collect::<Vec<_>>().join("/")
    }

    /// Counts a file or folder.
    pub(super) fn count(&mut self) -> Result<(), String> {
        self.seen += 1;
        if self.seen > ENTRIES {
            return Err(format!(
                "there are more than {ENTRIES} files and folders to search; use a narrower pattern"
            ));
        }
        Ok(())
    }

    /// Returns whether matching files can be below a folder.
    pub(super) fn enters(&self, folder: &str) -> bool {
        for (at, name) in folder.split('/').enumerate() {
            match self.parts.get(at) {
                Some(&"**") => return true,
                Some(part) if at + 1 < self.parts.len() => {
                    let matches = Pattern::new(part).is_ok_and(|part| part.matches_with(name, MATCHING));
                    if !matches {
                        return false;
                    }
                }
                _ => return false,
            }
        }
        true
    }

    /// Returns whether a file matches.
    pub(super) fn finds(&self, path: &str) -> bool {
        self.pattern.matches_with(path, MATCHING)
    }
}

/// Returns the path of a file or folder in a folder.
pub(super) fn joined(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        name.to_owned()
    } else {
        format!("{folder}/{name}")
    }
}
