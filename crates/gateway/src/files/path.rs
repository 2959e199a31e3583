//! Paths of container files: what sandboxes have in `/workspace`, clients and models know in `/mnt/data`.

use cellblock_agent::wire::ApiError;

const SHOWN: &str = "/mnt/data";
const INSIDE: &str = "/workspace";
/// Maximum number of bytes of a file's name.
const MAX_NAME: usize = 255;
/// Maximum characters of a file's name that are taken from a figure's name.
const MAX_STEM: usize = 50;

/// A sandbox's path, as clients and models call it.
pub(crate) fn shown(path: &str) -> String {
    match path.strip_prefix(INSIDE) {
        Some(rest) if rest.starts_with('/') => format!("{SHOWN}{rest}"),
        _ => path.to_owned(),
    }
}

/// The path in the sandbox of what clients and models call so.
pub(crate) fn inside(path: &str) -> String {
    match path.strip_prefix(SHOWN) {
        Some(rest) if rest.starts_with('/') => format!("{INSIDE}{rest}"),
        _ => path.to_owned(),
    }
}

/// Returns the path of a user's file with this name.
pub(crate) fn of_upload(name: &str) -> String {
    format!("{SHOWN}/{name}")
}

/// Returns the last part of a file's name, which must be valid in a sandbox.
pub(crate) fn file_name(name: &str, param: &str) -> Result<String, ApiError> {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let legal = !matches!(last, "" | "." | "..")
        && last.len() <= MAX_NAME
        && !last.chars().any(cellblock_interpreter::text::acts);
    if legal {
        return Ok(last.to_owned());
    }
    let message = format!(
        "the name of the file must have 1 to {MAX_NAME} bytes without control and invisible characters"
    );
    Err(ApiError::invalid(param, "invalid_value", message))
}

/// The beginning of a file's name, from what a figure is called: letters, digits, `-` and `_`, or nothing.
pub(crate) fn stem(name: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || c == '_' { c } else { '-' };
    let stem: String = name.chars().take(MAX_STEM).map(plain).collect();
    stem.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_s_name_becomes_a_file_s_name() {
        for (name, expected) in [
            ("sales_2024", "sales_2024"),
            ("Umsätze je Monat", "Umsätze-je-Monat"),
            ("../../etc/passwd", "etc-passwd"),
            ("…", ""),
        ] {
            assert_eq!(stem(name), expected);
        }
        assert_eq!(stem(&"x".repeat(500)).len(), MAX_STEM);
    }

    #[test]
    fn the_workspace_is_shown_as_mnt_data() {
        assert_eq!(shown("/workspace/a/b.csv"), "/mnt/data/a/b.csv");
        assert_eq!(shown("/tmp/output/b.csv"), "/tmp/output/b.csv");
        assert_eq!(shown("/workspaces/b"), "/workspaces/b");
        assert_eq!(inside("/mnt/data/b.csv"), "/workspace/b.csv");
        assert_eq!(inside("/tmp/output/b.csv"), "/tmp/output/b.csv");
    }

    #[test]
    fn only_the_last_part_of_a_name_counts() {
        for (name, last) in [
            ("a.csv", "a.csv"),
            ("../../etc/passwd", "passwd"),
            ("C:\\x\\é.txt", "é.txt"),
        ] {
            assert_eq!(file_name(name, "file").unwrap(), last);
        }
        for name in ["", "..", "a/", "a/..", "a\nb", &"x".repeat(256)] {
            assert!(file_name(name, "file").is_err(), "{name:?}");
        }
    }
}
