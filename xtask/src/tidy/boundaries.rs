//! Every boundary that the documentation describes names tests, and all of them exist.

use super::Violation;
use super::tree::File;

/// The page with one section per boundary.
const PAGE: &str = "docs/boundaries.md";

/// The line above the list of tests of a section.
const TESTS: &str = "Tests:";

/// Reports missing tests of the page, items that are not tests, and sections without a test.
pub(super) fn check(files: &[File]) -> Vec<Violation> {
    let page = files.iter().find(|file| file.path == PAGE);
    page.map(|page| check_page(page, files)).unwrap_or_default()
}

fn check_page(page: &File, files: &[File]) -> Vec<Violation> {
    let mut violations = Vec::new();
    // The heading of the current section, with the number of its tests.
    let mut section: Option<(usize, usize)> = None;
    let mut in_tests = false;
    for (line, text) in page.lines() {
        if text.starts_with('#') {
            in_tests = false;
            if text.starts_with("## ") {
                violations.extend(without_tests(page, section));
                section = Some((line, 0));
            }
        } else if text == TESTS {
            in_tests = true;
        } else if in_tests && let Some(item) = text.strip_prefix('-') {
            section = section.map(|(heading, tests)| (heading, tests + 1));
            let problem = problem(item.trim(), files);
            violations.extend(problem.map(|message| Violation::new(page, line, message)));
        }
    }
    violations.extend(without_tests(page, section));
    violations
}

fn without_tests(page: &File, section: Option<(usize, usize)>) -> Option<Violation> {
    let (heading, _) = section.filter(|(_, tests)| *tests == 0)?;
    let message = format!("boundary without a test; list its tests below `{TESTS}`");
    Some(Violation::new(page, heading, message))
}

/// Returns the reason why an item of a list does not name a test: a file, a folder, or a function of a file.
fn problem(item: &str, files: &[File]) -> Option<String> {
    let named = item
        .strip_prefix('`')
        .and_then(|rest| rest.split_once('`'))
        .map(|(name, _)| name);
    let Some(name) = named else {
        return Some(format!(
            "`{item}` is not a test; begin it with a path in backticks"
        ));
    };
    let (path, function) = match name.split_once("::") {
        Some((path, function)) => (path, Some(function)),
        None => (name, None),
    };
    let in_folder = |file: &File| path.ends_with('/') && file.path.starts_with(path);
    let Some(file) = files.iter().find(|file| file.path == path || in_folder(file)) else {
        return Some(format!("`{path}` does not exist"));
    };
    let function = function.filter(|function| !defines(file, function))?;
    Some(format!("`{path}` has no function `{function}`"))
}

/// Tells whether a Rust or Python file defines a function.
fn defines(file: &File, function: &str) -> bool {
    let start = format!("def {function}(");
    let in_python = || {
        file.lines()
            .any(|(_, text)| text.trim_start().starts_with(&start))
    };
    let pairs = file.tokens().windows(2);
    let mut names = pairs
        .filter(|pair| pair[0].text == "fn")
        .map(|pair| &pair[1].text);
    names.any(|name| name == function) || file.is("py") && in_python()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a page in a tree with a test in Rust, a test in Python and a probe.
    fn found(page: &str) -> Vec<String> {
        let files = [
            File::of(PAGE, page),
            File::of("a/it.rs", "// fn gone() {}\n#[test]\nfn holds() {}\n"),
            File::of("a/test_it.py", "class T:\n    def test_holds(self): ...\n"),
            File::of("probes/files/terminal.py", "print()\n"),
        ];
        check(&files).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn files_folders_and_functions_that_exist_are_tests() {
        let page = "# Page\n\n- `no/test.rs`\n\n## A\n\n- `no/test.rs`\n\nTests:\n\n\
                    - `a/it.rs::holds`, as root\n\
                    - `a/test_it.py::test_holds`\n\n## B\n\nTests:\n\n- `a/it.rs`\n- `probes/files/`\n\
                    - `probes/files/terminal.py`\n";
        assert_eq!(found(page), [""; 0]);
    }

    #[test]
    fn a_test_that_does_not_exist_is_reported_with_its_line() {
        let page = "## A\nTests:\n- `a/it.rs::gone`\n- `a/other.rs::holds`\n- `a/test_it.py::holds`\n\
                    - `probes/network/`\n- `probes`\n- all probes\n-\n";
        assert_eq!(
            found(page),
            [
                "docs/boundaries.md:3: `a/it.rs` has no function `gone`",
                "docs/boundaries.md:4: `a/other.rs` does not exist",
                "docs/boundaries.md:5: `a/test_it.py` has no function `holds`",
                "docs/boundaries.md:6: `probes/network/` does not exist",
                "docs/boundaries.md:7: `probes` does not exist",
                "docs/boundaries.md:8: `all probes` is not a test; begin it with a path in backticks",
                "docs/boundaries.md:9: `` is not a test; begin it with a path in backticks",
            ]
        );
    }

    #[test]
    fn a_section_without_a_test_is_reported_at_its_heading() {
        let message = "boundary without a test; list its tests below `Tests:`";
        assert_eq!(
            found("# Page\n## A\nText.\n## B\nTests:\n### C\n- `a/it.rs`\n"),
            [
                format!("docs/boundaries.md:2: {message}"),
                format!("docs/boundaries.md:4: {message}"),
            ]
        );
    }

    #[test]
    fn a_tree_without_the_page_has_no_boundaries() {
        assert_eq!(check(&[File::of("a.md", "## A\n")]), []);
    }
}
