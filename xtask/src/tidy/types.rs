//! The name of a type that leaves its module is defined once in the workspace.

use std::collections::{BTreeMap, BTreeSet};

use super::Violation;
use super::modules;
use super::tree::File;

/// Names that one type in each of these packages may have, and why.
struct NameException {
    names: &'static [&'static str],
    packages: &'static [&'static str],
    #[expect(
        dead_code,
        reason = "the reason is for the reader; requiring the field requires the reason"
    )]
    reason: &'static str,
}

/// Keep it short. An entry that no package needs is rejected as well.
const ALLOWED: &[NameException] = &[
    NameException {
        names: &["Error"],
        packages: &[
            "crates/cli",
            "crates/interpreter",
            "crates/jail",
            "crates/sandbox",
        ],
        reason: "Rust's usual name for the error of a crate, which other crates import as `SandboxError`",
    },
    NameException {
        names: &["Result"],
        packages: &[
            "crates/cli",
            "crates/image",
            "crates/interpreter",
            "crates/jail",
            "crates/sandbox",
        ],
        reason: "the standard library's `Result` with the crate's own error",
    },
    NameException {
        names: &["Options"],
        packages: &["crates/gateway", "crates/mcp"],
        reason: "the settings of the whole crate, so its own name says whose they are",
    },
    NameException {
        names: &[
            "Answer",
            "Chart",
            "Column",
            "Dataframe",
            "Exception",
            "Figure",
            "Finding",
            "Image",
            "Output",
            "Primitive",
            "Rejection",
            "Rich",
            "SkippedFile",
        ],
        packages: &["crates/interpreter", "crates/protocol"],
        reason: "a message of a sandbox and the checked value that callers get; both names are in \
                 published schemas",
    },
];

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
        Self(types)
    }

    /// Rejects a name that several types have, except those of the list.
    pub(super) fn repeated(&self) -> Vec<Violation> {
        let repeated = self.0.iter().filter(|(name, places)| {
            let packages: BTreeSet<_> = places.iter().filter_map(|(file, _)| package(file)).collect();
            let once_each = packages.len() == places.len();
            let may = |package| allowed().any(|entry| entry == (**name, package));
            places.len() > 1 && !(once_each && packages.into_iter().all(may))
        });
        repeated.map(|(name, places)| taken(name, places)).collect()
    }

    /// Rejects entries of the list for which a package has no such type.
    pub(super) fn unused(&self) -> Vec<Violation> {
        let defines = |name: &str, package_name: &str| {
            let places = self.0.get(name).into_iter().flatten();
            places
                .into_iter()
                .any(|(file, _)| package(file) == Some(package_name))
        };
        let unused = allowed().filter(|(name, package)| !defines(name, package));
        unused
            .map(|(name, package)| Violation {
                path: "xtask/src/tidy/types.rs".to_owned(),
                line: 1,
                message: format!("`{package}` defines no `{name}`; remove it from the exceptions"),
            })
            .collect()
    }
}

/// Lists the exceptions: a name and a package that may define it.
fn allowed() -> impl Iterator<Item = (&'static str, &'static str)> {
    ALLOWED.iter().flat_map(|entry| {
        let names = entry.names.iter();
        names.flat_map(|name| entry.packages.iter().map(|package| (*name, *package)))
    })
}

fn package(file: &File) -> Option<&str> {
    modules::place(file).map(|(package, _)| package)
}

fn taken(name: &str, places: &[(&File, usize)]) -> Violation {
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

    fn repeated(files: &[File]) -> Vec<String> {
        let violations = Types::of(files).repeated();
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
            repeated(&files),
            [
                "crates/x/src/a.rs:1: `Answer` is also defined at crates/y/src/a.rs:2; name one of them \
                 after its module"
            ]
        );
    }

    #[test]
    fn a_name_of_the_list_may_be_defined_once_in_each_of_its_packages() {
        let in_files = |paths: &[&str]| {
            let files = paths.iter().map(|path| File::of(path, "pub enum Error {}\n"));
            repeated(&files.collect::<Vec<_>>()).len()
        };
        let (jail, cli) = ("crates/jail/src/error.rs", "crates/cli/src/error.rs");
        assert_eq!(in_files(&[jail, cli]), 0);
        assert_eq!(in_files(&[jail, cli, "crates/cli/src/other.rs"]), 1);
        assert_eq!(in_files(&[jail, "crates/chart/src/error.rs"]), 1);
    }

    #[test]
    fn an_entry_of_the_list_that_no_package_needs_is_rejected() {
        let files = [File::of("crates/mcp/src/options.rs", "pub struct Options;\n")];
        let unused = Types::of(&files).unused();
        assert_eq!(unused.len(), allowed().count() - 1);
        assert_eq!(
            unused[0].to_string(),
            "xtask/src/tidy/types.rs:1: `crates/cli` defines no `Error`; remove it from the exceptions"
        );
    }
}
