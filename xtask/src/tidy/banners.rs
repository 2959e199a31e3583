//! Sections of a file are items and modules, not lines of dashes.

use super::Violation;
use super::tree::File;

/// Refuses comments that are drawn as a rule or a box.
pub(super) fn check(file: &File) -> Vec<Violation> {
    let marker = if file.is("rs") {
        "//"
    } else if ["py", "toml", "yml", "yaml", "sh"]
        .iter()
        .any(|extension| file.is(extension))
        || file.path.starts_with(".ci/")
    {
        "#"
    } else {
        return Vec::new();
    };
    let drawn = file.lines().filter(|(_, line)| is_drawn(line, marker));
    drawn
        .map(|(line, _)| Violation::new(file, line, "banner comment; make it an item or a module"))
        .collect()
}

fn is_drawn(line: &str, marker: &str) -> bool {
    let Some(comment) = line.trim().strip_prefix(marker) else {
        return false;
    };
    let doc = marker == "//"
        && (comment.starts_with('!') || (comment.starts_with('/') && !comment.starts_with("//")));
    let run = |text: &mut dyn Iterator<Item = char>| {
        let mut text = text.skip_while(|c| *c == ' ');
        let first = text.next();
        first.is_some_and(|first| {
            "-=*#~_/─═━".contains(first) && text.take_while(|c| *c == first).count() >= 3
        })
    };
    // Tables and drawings in documentation are content.
    !doc && (run(&mut comment.chars()) || run(&mut comment.chars().rev()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_and_boxes_are_rejected() {
        for line in [
            "// ----",
            "//////////",
            "    // ==== Helpers ====",
            "// Helpers ─────",
            "// *****",
        ] {
            assert_eq!(check(&File::of("a.rs", line)).len(), 1, "{line}");
        }
        assert_eq!(check(&File::of(".ci/run", "# ---- tests ----")).len(), 1);
        assert_eq!(check(&File::of("a.py", "######")).len(), 1);
    }

    #[test]
    fn sentences_documentation_and_cell_markers_are_not() {
        for line in [
            "// a -- b",
            "//! | a |\n//! |---|",
            "/// -----",
            "let a = b; // c",
            "// see `--check`",
        ] {
            assert_eq!(check(&File::of("a.rs", line)), [], "{line}");
        }
        assert_eq!(check(&File::of("a.py", "# %% A cell\n# why")), []);
        assert_eq!(check(&File::of("a.md", "# Title\n-----")), []);
    }
}
