//! No test is skipped without a record.

use super::Violation;
use super::tree::File;

/// The one function that skips Python tests, and records it.
const PYTHON_RECORDER: &str = "crates/guest/python/tests/needs.py";

const PYTHON_SKIPS: [&str; 7] = [
    "unittest.skip",
    "import skip",
    ".skipTest(",
    "SkipTest",
    "expectedFailure",
    "pytest.skip",
    "pytest.mark.skip",
];

/// Refuses `#[ignore]`, and skips of Python tests outside the function that records them.
pub(super) fn check(file: &File) -> Vec<Violation> {
    if file.is("py") && file.path != PYTHON_RECORDER {
        let skips = file
            .lines()
            .filter(|(_, line)| PYTHON_SKIPS.iter().any(|skip| line.contains(skip)));
        let message = format!("unrecorded skip; use the function in {PYTHON_RECORDER}");
        return skips
            .map(|(line, _)| Violation::new(file, line, &*message))
            .collect();
    }
    let message = "unrecorded skip; name the missing capability with `cellblock_testkit::require!`";
    ignored_tests(file)
        .into_iter()
        .map(|line| Violation::new(file, line, message))
        .collect()
}

/// Finds `#[ignore]`, `#[ignore = "…"]` and `#[cfg_attr(…, ignore)]`.
fn ignored_tests(file: &File) -> Vec<usize> {
    let tokens = file.tokens();
    let text = |index: usize| tokens.get(index).map_or("", |token| &*token.text);
    let attributes = (0..tokens.len()).filter(|start| text(*start) == "#" && text(start + 1) == "[");
    let ignores = |start: &usize| match text(start + 2) {
        "ignore" => true,
        "cfg_attr" => {
            let end = (*start..tokens.len())
                .find(|index| text(*index) == "]")
                .unwrap_or(tokens.len());
            (*start..end).any(|index| text(index) == "ignore" && matches!(text(index - 1), "," | "("))
        }
        _ => false,
    };
    attributes
        .filter(ignores)
        .map(|start| tokens[start].line)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ignored_rust_test_is_rejected() {
        for attribute in ["#[ignore]", "#[ignore = \"slow\"]", "#[cfg_attr(miri, ignore)]"] {
            let text = format!("#[test]\n{attribute}\nfn t() {{}}\n");
            assert_eq!(check(&File::of("a.rs", &text)).len(), 1, "{attribute}");
        }
        assert_eq!(
            check(&File::of(
                "a.rs",
                "#[serde(skip)]\nfn ignore() {}\n// #[ignore]\n"
            )),
            []
        );
    }

    #[test]
    fn a_python_skip_is_rejected_outside_the_recorder() {
        let skip = "    @unittest.skipIf(True, 'no')\n";
        let found = check(&File::of("tests/test_a.py", skip));
        assert_eq!(
            found[0].to_string(),
            "tests/test_a.py:1: unrecorded skip; use the function in crates/guest/python/tests/needs.py"
        );
        assert_eq!(
            check(&File::of("tests/test_a.py", "self.skipTest('no')")).len(),
            1
        );
        assert_eq!(check(&File::of(PYTHON_RECORDER, skip)), []);
    }
}
