//! `unsafe` stays in two crates, and each use says why it is sound.

use super::Violation;
use super::tree::File;

/// The crates at the boundary to the kernel, the only ones that may opt out of `unsafe_code = "deny"`.
const PERIMETER: [&str; 2] = ["crates/jail/", "crates/guest/"];

/// Maximum number of lines from the start of the explanation to the keyword.
const REACH: usize = 12;

/// Refuses `unsafe` outside the perimeter, and inside it without a `SAFETY:` comment or a `# Safety` section.
pub(super) fn check(file: &File) -> Vec<Violation> {
    let uses = file
        .tokens()
        .iter()
        .filter(|token| token.text == "unsafe")
        .map(|token| token.line);
    let inside = PERIMETER.iter().any(|folder| file.path.starts_with(folder));
    if !inside {
        let message = "`unsafe` belongs into crates/jail or crates/guest";
        return uses.map(|line| Violation::new(file, line, message)).collect();
    }
    let lines: Vec<&str> = file.text.lines().collect();
    let explained = |line: usize| {
        let above = &lines[line.saturating_sub(REACH + 1)..line];
        above
            .iter()
            .any(|line| line.contains("// SAFETY:") || line.contains("/// # Safety"))
    };
    let bare = uses.filter(|line| !explained(*line));
    bare.map(|line| Violation::new(file, line, "`unsafe` without a `// SAFETY:` comment above it"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPLAINED: &str = "//! M.\nfn f() {\n    // SAFETY: the kernel fills it.\n    unsafe { g() }\n}\n";

    #[test]
    fn unsafe_outside_the_perimeter_is_rejected_even_when_explained() {
        let found = check(&File::of("crates/cli/src/a.rs", EXPLAINED));
        assert_eq!(
            found[0].to_string(),
            "crates/cli/src/a.rs:4: `unsafe` belongs into crates/jail or crates/guest"
        );
        assert_eq!(check(&File::of("crates/jail/src/a.rs", EXPLAINED)), []);
    }

    #[test]
    fn unsafe_without_an_explanation_is_rejected_inside_macros_too() {
        let bare = "fn f() {\n    println!(\"{}\", unsafe { g() });\n}\n";
        let found = check(&File::of("crates/guest/src/a.rs", bare));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 2);
    }

    #[test]
    fn an_explanation_far_above_does_not_count() {
        let far = format!("// SAFETY: far.\n{}unsafe fn f() {{}}\n", "\n".repeat(12));
        assert_eq!(check(&File::of("crates/jail/src/a.rs", &far)).len(), 1);
        let near = format!("// SAFETY: near.\n{}unsafe fn f() {{}}\n", "\n".repeat(11));
        assert_eq!(check(&File::of("crates/jail/src/a.rs", &near)), []);
    }

    #[test]
    fn the_word_in_comments_strings_and_lint_names_is_allowed() {
        let words = "#![deny(unsafe_code)]\n// unsafe\nconst A: &str = \"unsafe\";\n";
        assert_eq!(check(&File::of("crates/cli/src/a.rs", words)), []);
    }
}
