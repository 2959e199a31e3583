//! The name of a type that leaves its module is defined once in the workspace.

use std::collections::BTreeMap;

use super::Violation;
use super::budget::{Budget, Counts};
use super::modules;
use super::tree::File;

pub(super) const BUDGET: Budget = Budget {
    file: "types.txt",
    title: "Names of types that are defined more than once.",
};

/// Definitions of types by name: the file and the line of each.
#[derive(Debug)]
pub(super) struct Types<'a>(BTreeMap<&'a str, Vec<(&'a File, usize)>>);

impl<'a> Types<'a> {
    /// Lists every `pub` and `pub(crate)` type of every crate's `src`.
    pub(super) fn of(files: &'a [File]) -> Self {
        let mut types: BTreeMap<&str, Vec<(&File, usize)>> = BTreeMap::new();
        for file in files.iter().filter(|file| modules::place(file).is_some()) {
            for (name, line) in defined(file) {
                types.entry(name).or_default().push((file, line));
            }
        }
        types.retain(|_, places| places.len() > 1);
        Self(types)
    }

    /// Counts the definitions of each name that has several.
    pub(super) fn found(&self) -> Counts {
        let counts = self.0.iter();
        counts
            .map(|(name, places)| ((*name).to_owned(), places.len()))
            .collect()
    }

    /// Rejects names with more definitions than the list allows, and entries of the list that allow too many.
    pub(super) fn check(&self, allowed: &Counts) -> Vec<Violation> {
        let may = |name: &str| allowed.get(name).copied().unwrap_or(1);
        let over = self.0.iter().filter(|(name, places)| places.len() > may(name));
        let mut violations: Vec<_> = over.map(|(name, places)| too_many(name, places)).collect();
        for (name, count) in allowed {
            let found = self.0.get(name.as_str()).map_or(1, Vec::len);
            if found < *count {
                let message = format!(
                    "`{name}` has {found} of {count} definitions left; run `cargo xtask tidy --update`"
                );
                violations.push(Violation {
                    path: BUDGET.path(),
                    line: 1,
                    message,
                });
            }
        }
        violations
    }
}

fn too_many(name: &str, places: &[(&File, usize)]) -> Violation {
    let named = |(file, line): &(&File, usize)| format!("{}:{line}", file.path);
    let others: Vec<_> = places[1..].iter().map(named).collect();
    let (file, line) = places[0];
    let message = format!(
        "`{name}` is also defined at {}; name one of them after its module",
        others.join(", ")
    );
    Violation::new(file, line, message)
}

fn defined(file: &File) -> impl Iterator<Item = (&str, usize)> {
    let tokens = file.tokens();
    let text = |index: usize| tokens.get(index).map_or("", |token| token.text.as_str());
    (0..tokens.len()).filter_map(move |start| {
        let keyword = match [start, start + 1, start + 2, start + 3].map(text) {
            ["pub", "(", "crate", ")"] => start + 4,
            ["pub", ..] => start + 1,
            _ => return None,
        };
        let is_type = matches!(text(keyword), "struct" | "enum" | "trait" | "type" | "union");
        // A macro's `$name` is not a name.
        (is_type && text(keyword + 1) != "$").then(|| (text(keyword + 1), tokens[keyword].line))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(files: &[File], allowed: &[(&str, usize)]) -> Vec<String> {
        let allowed = allowed
            .iter()
            .map(|(name, count)| ((*name).to_owned(), *count))
            .collect();
        let violations = Types::of(files).check(&allowed);
        violations.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_type_name_that_two_modules_define_is_rejected() {
        let files = [
            File::of(
                "crates/x/src/a.rs",
                "pub struct Answer;\nstruct Own;\npub(super) enum Room {}\n",
            ),
            File::of(
                "crates/y/src/a.rs",
                "\npub(crate) enum Answer {}\nstruct Own;\npub(super) enum Room {}\n",
            ),
            File::of("crates/y/tests/a.rs", "pub struct Answer;\n"),
        ];
        assert_eq!(
            messages(&files, &[]),
            [
                "crates/x/src/a.rs:1: `Answer` is also defined at crates/y/src/a.rs:2; name one of them after its module"
            ]
        );
        assert_eq!(messages(&files, &[("Answer", 2)]), [""; 0]);
    }

    #[test]
    fn an_entry_of_the_list_that_allows_too_many_is_rejected() {
        let files = [File::of("crates/x/src/a.rs", "pub struct Answer;\n")];
        assert_eq!(
            messages(&files, &[("Answer", 2)]),
            ["xtask/tidy/types.txt:1: `Answer` has 1 of 2 definitions left; run `cargo xtask tidy --update`"]
        );
    }
}
