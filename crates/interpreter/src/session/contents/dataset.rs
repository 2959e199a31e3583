//! Datasets: files of the host that a session's code finds in `/tmp/data`, and what is said of them.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use crate::session::contents::describe::{DatasetFormat, DatasetShape};

/// Bytes of a name, its number and extension not counted.
const MAX_NAME: usize = 120;
/// Name of a dataset without a usable name.
const UNNAMED: &str = "dataset";

/// Source of a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatasetSource {
    /// A file, as it is.
    File(PathBuf),
    /// A Parquet or Arrow file, converted to CSV.
    AsCsv(PathBuf),
}

/// A dataset of a session.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Mounted")]
pub struct DatasetMount {
    /// The requested name.
    pub requested: String,
    /// Its file name in `/tmp/data`. It differs from the requested name if that has unsafe
    /// characters or is taken.
    pub name: String,
    /// Its path in the sandbox.
    pub path: String,
    /// Its bytes.
    pub bytes: u64,
    /// Method by which it was made available.
    pub how: MountKind,
    /// Reason that the file was not mounted directly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Its rows and columns, if they are known.
    pub shape: DatasetShape,
}

/// Method by which a dataset is made available in a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "How")]
pub enum MountKind {
    /// The file itself is mounted read-only; later changes by the host are visible.
    Mounted,
    /// A copy-on-write clone of it is mounted.
    Cloned,
    /// A copy of it on the host's disk is mounted, because it was converted or cannot be mounted
    /// itself.
    Copied,
    /// It is copied into the memory of each sandbox, because nothing can be mounted there.
    Streamed,
}

impl DatasetSource {
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::File(path) | Self::AsCsv(path) => path,
        }
    }

    /// The format of what the sandbox gets.
    pub(crate) fn format(&self) -> DatasetFormat {
        match self {
            Self::File(path) => DatasetFormat::of(path),
            Self::AsCsv(_) => DatasetFormat::Csv,
        }
    }
}

/// A name for a file, without its extension: as the seed cleans it (`/` and ` `), and whatever else
/// is not safe in one.
fn clean(name: &str) -> String {
    let mut clean = String::new();
    for character in name.chars() {
        let safe = character.is_alphanumeric() || matches!(character, '_' | '-' | '.');
        let character = if safe { character } else { '_' };
        if clean.len() + character.len_utf8() > MAX_NAME {
            break;
        }
        clean.push(character);
    }
    // A hidden file would not be listed, and `..` is none.
    if clean.starts_with('.') {
        clean.replace_range(..1, "_");
    }
    if clean.chars().all(|character| character == '_') {
        UNNAMED.clone_into(&mut clean);
    }
    clean
}

/// The file's name for a dataset: cleaned, and numbered if another file has it.
pub(crate) fn file_name(requested: &str, extension: &str, taken: impl Fn(&str) -> bool) -> String {
    let suffix = format!(".{extension}");
    let stem = match requested.len().checked_sub(suffix.len()) {
        // Somebody who calls a dataset by its file's name means that file.
        Some(at) if requested.is_char_boundary(at) && requested[at..].eq_ignore_ascii_case(&suffix) => {
            &requested[..at]
        }
        _ => requested,
    };
    let stem = clean(stem);
    let mut name = format!("{stem}{suffix}");
    let mut number = 2_u64;
    while taken(&name) {
        name = format!("{stem}_{number}{suffix}");
        number += 1;
    }
    name
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_cleaned_as_in_the_seed_and_beyond() {
        for (requested, name) in [
            ("sales", "sales.csv"),
            ("q1/north region", "q1_north_region.csv"),
            ("sales.csv", "sales.csv"),
            ("sales.CSV", "sales.csv"),
            ("../../etc/passwd", "_._.._etc_passwd.csv"),
            ("a\nb\0c", "a_b_c.csv"),
            ("umsätze-2024", "umsätze-2024.csv"),
            ("", "dataset.csv"),
            ("///", "dataset.csv"),
            (".hidden", "_hidden.csv"),
            ("$(rm)", "__rm_.csv"),
        ] {
            assert_eq!(file_name(requested, "csv", |_| false), name, "{requested:?}");
        }
        assert_eq!(file_name(&"x".repeat(500), "csv", |_| false).len(), MAX_NAME + 4);
    }

    #[test]
    fn a_name_that_is_taken_gets_a_number() {
        let taken = ["a_b.csv", "a_b_2.csv"];
        assert_eq!(file_name("a b", "csv", |name| taken.contains(&name)), "a_b_3.csv");
    }

    proptest! {
        #[test]
        fn any_name_becomes_one_plain_file(requested in any::<String>()) {
            let name = file_name(&requested, "csv", |_| false);
            prop_assert!(!name.contains(['/', '\0', ' ']) && !name.starts_with('.'));
            prop_assert!(name.len() <= MAX_NAME + 4 && !name.chars().any(char::is_control));
            prop_assert_eq!(file_name(&name, "csv", |_| false), name.clone());
        }
    }
}
