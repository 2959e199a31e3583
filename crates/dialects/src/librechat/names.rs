//! Ids as LibreChat checks them, and names of files.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cellblock_interpreter::mint;
use ring::digest::{SHA256, digest};

use super::error::Problem;

/// Number of characters of an id.
const ID: usize = 21;
/// Maximum length of a file's name.
const MAX_NAME: usize = 512;

/// Returns a new id: 126 random bits.
pub(super) fn id() -> String {
    derived(&mint(""))
}

/// Returns the id that belongs to a text.
pub(super) fn derived(text: &str) -> String {
    let hash = digest(&SHA256, text.as_bytes());
    let mut id = URL_SAFE_NO_PAD.encode(hash);
    id.truncate(ID);
    id
}

/// Rejects what cannot be an id.
pub(super) fn check_id(id: &str) -> Result<(), Problem> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if id.chars().count() == ID && id.chars().all(allowed) {
        return Ok(());
    }
    let shown: String = id.chars().take(64).collect();
    Err(Problem::invalid(format!(
        "invalid id {shown:?}: must be {ID} letters, digits, `_` or `-`"
    )))
}

/// Returns a file's name below the working directory, if each part of it is safe.
pub(super) fn file_name(name: &str) -> Result<String, Problem> {
    let name = name.strip_prefix("/mnt/data/").unwrap_or(name);
    let acts = |c: char| c.is_control() || c == '\\' || cellblock_interpreter::text::acts(c);
    let safe = |part: &str| !part.is_empty() && part != "." && part != ".." && !part.chars().any(acts);
    if name.len() <= MAX_NAME && name.split('/').all(safe) {
        return Ok(name.to_owned());
    }
    let shown: String = name.chars().take(64).collect();
    Err(Problem::invalid(format!(
        "invalid file name {shown:?}: must be a relative path without `..`, of at most {MAX_NAME} bytes"
    )))
}

/// A tool's name as code calls it. The client makes the same one of it.
pub(super) fn function(name: &str) -> String {
    let mut function: String = name
        .chars()
        .map(|c| if c == '-' || c.is_whitespace() { '_' } else { c })
        .filter(|c| c.is_ascii_alphanumeric() || *c == '_')
        .collect();
    if function.starts_with(|c: char| c.is_ascii_digit()) {
        function.insert(0, '_');
    }
    if KEYWORDS.contains(&function.as_str()) {
        function.push_str("_tool");
    }
    function
}

const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
    "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is",
    "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_the_form_that_librechat_checks() {
        let ids: Vec<_> = (0..50).map(|_| id()).collect();
        assert!(ids.iter().all(|id| check_id(id).is_ok()), "{ids:?}");
        assert_ne!(ids[0], ids[1]);
        assert!(check_id("short").is_err() && check_id(&"é".repeat(21)).is_err());
        assert!(check_id(&format!("{}/", &ids[0][1..])).is_err());
    }

    #[test]
    fn a_file_name_stays_below_the_working_directory() {
        assert_eq!(file_name("a/b c.csv").unwrap(), "a/b c.csv");
        assert_eq!(file_name("/mnt/data/a.csv").unwrap(), "a.csv");
        for wrong in [
            "",
            "/etc/passwd",
            "../a",
            "a//b",
            "a/./b",
            "a\\b",
            "a\nb",
            "a\u{202e}b",
            &"x".repeat(513),
        ] {
            assert!(file_name(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_tool_has_the_name_that_the_client_gives_it() {
        for (name, expected) in [
            ("get-weather", "get_weather"),
            ("a b.c", "a_bc"),
            ("2x", "_2x"),
            ("class", "class_tool"),
        ] {
            assert_eq!(function(name), expected);
        }
    }
}
