//! Types are named after what they are, not after the fact that they do something.

use std::collections::BTreeSet;

use super::Violation;
use super::tree::File;

const EMPTY_WORDS: [&str; 7] = ["Manager", "Helper", "Context", "Utils", "Data", "Info", "Handler"];

/// Refuses types whose name ends in a word that says nothing.
pub(super) fn check(file: &File) -> Vec<Violation> {
    let named = if file.is("py") {
        python_classes(file)
    } else {
        rust_types(file)
    };
    let empty = |name: &str| EMPTY_WORDS.into_iter().find(|word| last_word(name) == *word);
    let refused = named
        .into_iter()
        .filter_map(|(line, name)| Some((line, empty(&name)?, name)));
    refused
        .map(|(line, word, name)| {
            Violation::new(
                file,
                line,
                format!("`{name}`: `{word}` says nothing; name the thing"),
            )
        })
        .collect()
}

/// Lists the types that a file defines, with their lines; associated types are left out.
pub(super) fn rust_types(file: &File) -> Vec<(usize, String)> {
    let tokens = file.tokens();
    let declares = |text: &str| matches!(text, "struct" | "enum" | "trait" | "type" | "union");
    // The name of an associated type is its trait's: `type Data = Bytes;` of a body.
    let associated: BTreeSet<_> = file
        .lines()
        .filter(|(_, line)| line.starts_with(' ') && line.trim_start().starts_with("type "))
        .map(|(number, _)| number)
        .collect();
    let pairs = tokens.windows(2).filter(|pair| declares(&pair[0].text));
    pairs
        .map(|pair| (pair[1].line, pair[1].text.clone()))
        .filter(|(line, _)| !associated.contains(line))
        .collect()
}

fn python_classes(file: &File) -> Vec<(usize, String)> {
    let class = |line: &str| {
        let rest = line.trim_start().strip_prefix("class ")?;
        Some(
            rest.split(|c: char| !c.is_alphanumeric() && c != '_')
                .next()?
                .to_owned(),
        )
    };
    file.lines()
        .filter_map(|(number, line)| Some((number, class(line)?)))
        .collect()
}

/// Returns what follows the last boundary between words: `HostInfo` ends in `Info`, `Metadata` in `Metadata`.
fn last_word(name: &str) -> &str {
    let start = name.rfind(char::is_uppercase).unwrap_or_default();
    &name[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_that_ends_in_an_empty_word_is_rejected() {
        let found = check(&File::of(
            "a.rs",
            "struct A;\npub enum PoolManager {}\ntrait Data {}\nimpl Body for A {\n    type Data = u8;\n}\n",
        ));
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "a.rs:2: `PoolManager`: `Manager` says nothing; name the thing",
                "a.rs:3: `Data`: `Data` says nothing; name the thing",
            ]
        );
        assert_eq!(
            check(&File::of("a.py", "class A:\n    class CellHandler(B):\n")).len(),
            1
        );
    }

    #[test]
    fn such_a_word_elsewhere_in_a_name_is_allowed() {
        assert_eq!(
            check(&File::of(
                "a.rs",
                "struct Metadata;\nstruct DataFrame;\nuse anyhow::Context;\n"
            )),
            []
        );
    }
}
