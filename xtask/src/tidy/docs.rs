//! Every source file begins by saying what it is.

use super::Violation;
use super::tree::File;

/// Asks for a `//!` line at the top of Rust files and for a docstring in Python files.
pub(super) fn check(file: &File) -> Vec<Violation> {
    let missing = if file.is("rs") && !file.text.starts_with("//! ") {
        "file does not begin with a `//!` line that says what it is"
    } else if file.is("py") && !has_docstring(&file.text) {
        "file does not begin with a docstring that says what it is"
    } else {
        return Vec::new();
    };
    vec![Violation::new(file, 1, missing)]
}

fn has_docstring(text: &str) -> bool {
    let mut statements = text
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    statements
        .next()
        .is_some_and(|line| line.starts_with("\"\"\"") || line.starts_with("r\"\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_begins_with_a_module_doc() {
        assert_eq!(check(&File::of("a.rs", "//! What it is.\n")), []);
        assert_eq!(check(&File::of("a.rs", "use x;\n//! Late.\n")).len(), 1);
        assert_eq!(check(&File::of("a.rs", "//!\n")).len(), 1);
    }

    #[test]
    fn python_begins_with_a_docstring_that_comments_may_precede() {
        assert_eq!(
            check(&File::of(
                "a.py",
                "#!/usr/bin/env python3\n\n\"\"\"What it is.\"\"\"\n"
            )),
            []
        );
        assert_eq!(
            check(&File::of("a.py", "import os\n\"\"\"Late.\"\"\"\n")).len(),
            1
        );
        assert_eq!(check(&File::of("__init__.py", "")).len(), 1);
    }

    #[test]
    fn other_files_need_none() {
        assert_eq!(check(&File::of("a.toml", "x = 1\n")), []);
    }
}
