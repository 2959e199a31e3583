//! Reads from Rust tokens which modules of its own crate a file uses.

use std::collections::BTreeSet;

use super::tokens::Token;
use super::tree::File;

/// A path inside a crate, from the crate's root, and where it is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CratePath {
    pub(super) path: Vec<String>,
    /// Name under which an import binds it.
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) kind: PathKind,
}

/// Kind of the place where a path is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathKind {
    /// Code, or a macro.
    Code,
    /// A private import.
    Import,
    /// An import that others can use under its name.
    Reexport,
}

/// Returns the crate's folder and the file's module, for a file of a crate's `src` that is not only
/// for tests.
pub(super) fn place(file: &File) -> Option<(&str, Vec<&str>)> {
    let (package, inside) = file.path.split_once("/src/")?;
    let mut module: Vec<&str> = inside.strip_suffix(".rs")?.split('/').collect();
    if module.contains(&"tests") || module[0] == "bin" {
        return None;
    }
    if matches!(module.as_slice(), [.., "mod"] | ["lib" | "main"]) {
        module.pop();
    }
    Some((package, module))
}

/// Lists the paths below `crate::` that code in `module` names, those into its children included.
///
/// Tokens of macros are read. Those of `#[cfg(test)]` modules, `#[cfg(doc)]` imports and
/// visibilities are not.
pub(super) fn used(tokens: &[Token], module: &[&str]) -> Vec<CratePath> {
    let module: Vec<_> = module.iter().map(|part| (*part).to_owned()).collect();
    let mut reader = Reader {
        tokens,
        at: 0,
        used: Vec::new(),
        kind: PathKind::Code,
        children: tokens
            .windows(3)
            .filter(|it| it[0].text == "mod" && it[2].text == ";")
            .map(|it| it[1].text.as_str())
            .collect(),
        depth: module.len(),
    };
    reader.block(&module);
    reader.used
}

struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
    used: Vec<CratePath>,
    kind: PathKind,
    /// Modules that the file declares.
    children: BTreeSet<&'a str>,
    /// Depth of the file's module.
    depth: usize,
}

impl<'a> Reader<'a> {
    fn text(&self, index: usize) -> &'a str {
        self.tokens.get(index).map_or("", |token| &token.text)
    }

    /// Returns the token before the current one.
    fn before(&self) -> &'a str {
        self.at.checked_sub(1).map_or("", |index| self.text(index))
    }

    /// Reads up to the closing brace of a module, or the end.
    fn block(&mut self, module: &[String]) {
        let mut depth = 0;
        while self.at < self.tokens.len() {
            match self.text(self.at) {
                "{" => depth += 1,
                "}" if depth == 0 => return,
                "}" => depth -= 1,
                "mod" if self.text(self.at + 2) == "{" => {
                    self.inline_module(module);
                    continue;
                }
                "in" if self.before() == "(" => self.at += 1,
                "use" if self.is_under("doc", self.at) => self.skip_to(";"),
                "use" if self.text(self.at + 1) != "<" => self.kind = self.import_kind(),
                ";" => self.kind = PathKind::Code,
                part if self.separated(self.at + 1) && self.begins_inside(part, module) => {
                    self.path(module.to_vec());
                    continue;
                }
                _ => {}
            }
            self.at += 1;
        }
    }

    fn inline_module(&mut self, module: &[String]) {
        let start = self.at;
        let name = self.text(start + 1).to_owned();
        let known = self.used.len();
        self.at += 3;
        self.block(&[module, &[name]].concat());
        self.at += 1;
        if self.is_under("test", start) {
            self.used.truncate(known);
        }
    }

    /// Returns whether a path of the crate begins with this part.
    fn begins_inside(&self, part: &str, module: &[String]) -> bool {
        let child = module.len() == self.depth && self.before() != ":" && self.children.contains(part);
        child || matches!(part, "crate" | "super" | "self")
    }

    fn import_kind(&self) -> PathKind {
        match self.before() {
            // The end of `pub` or `pub(…)`.
            "pub" | ")" => PathKind::Reexport,
            _ => PathKind::Import,
        }
    }

    fn skip_to(&mut self, end: &str) {
        while self.at < self.tokens.len() && self.text(self.at) != end {
            self.at += 1;
        }
    }

    fn is_under(&self, flag: &str, keyword: usize) -> bool {
        let attribute = ["#", "[", "cfg", "(", flag, ")", "]"];
        let starts = keyword.checked_sub(attribute.len());
        starts.is_some_and(|start| (start..).zip(attribute).all(|(at, text)| self.text(at) == text))
    }

    fn separated(&self, index: usize) -> bool {
        self.text(index) == ":" && self.text(index + 1) == ":"
    }

    /// Reads a path, or a tree of paths in braces, that goes on from `path`.
    fn path(&mut self, mut path: Vec<String>) {
        let line = self.tokens.get(self.at).map_or(0, |token| token.line);
        loop {
            match self.text(self.at) {
                "crate" => path.clear(),
                "super" => drop(path.pop()),
                "self" => {}
                "{" => return self.tree(&path),
                part if is_name(part) => path.push(part.to_owned()),
                // Of `a::*` and `a::<T>`, the part before is used.
                _ => break,
            }
            self.at += 1;
            if !self.separated(self.at) {
                break;
            }
            self.at += 2;
        }
        let name = if self.text(self.at) == "as" {
            self.at += 1;
            self.text(self.at).to_owned()
        } else {
            path.last().cloned().unwrap_or_default()
        };
        let kind = self.kind;
        self.used.push(CratePath {
            path,
            name,
            line,
            kind,
        });
    }

    fn tree(&mut self, path: &[String]) {
        self.at += 1;
        while !matches!(self.text(self.at), "}" | "") {
            self.path(path.to_vec());
            while !matches!(self.text(self.at), "," | "}" | "") {
                self.at += 1;
            }
            if self.text(self.at) == "," {
                self.at += 1;
            }
        }
        self.at += 1;
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str, module: &[&str]) -> Vec<String> {
        let file = File::of("a.rs", text);
        used(file.tokens(), module)
            .into_iter()
            .map(|used| format!("{}:{} {}", used.line, used.path.join("::"), used.name))
            .collect()
    }

    #[test]
    fn imports_and_paths_in_code_and_in_macros_are_found() {
        let text = "use crate::a::{b::{C, D as E}, self, f::*};\nuse std::fmt;\n\
                    fn f() \
                    {\n    println!(\"{}\", crate::g::h::<u8>(super::i));\n    super::super::j::k {};\n}\n";
        assert_eq!(
            paths(text, &["x", "y"]),
            [
                "1:a::b::C C",
                "1:a::b::D E",
                "1:a a",
                "1:a::f f",
                "4:g::h h",
                "4:x::i i",
                "5:j::k k"
            ]
        );
    }

    #[test]
    fn the_root_imports_from_its_children() {
        assert_eq!(
            paths("mod a;\npub use a::B;\nuse self::c::D;\n", &[]),
            ["2:a::B B", "3:c::D D"]
        );
    }

    #[test]
    fn a_module_uses_its_children_and_what_its_docs_and_visibilities_name_is_not_used() {
        let text = "mod a;\n#[cfg(doc)]\nuse crate::d::E;\npub(in crate::x) use a::B;\n\
                    pub(in super::super) fn f() -> impl C + use<> { a::g(b::a::h()) }\nuse a::I;\n";
        let file = File::of("a.rs", text);
        let kinds: Vec<_> = used(file.tokens(), &["x"])
            .into_iter()
            .map(|used| (used.path.join("::"), used.kind))
            .collect();
        assert_eq!(
            kinds,
            [
                ("x::a::B".to_owned(), PathKind::Reexport),
                ("x::a::g".to_owned(), PathKind::Code),
                ("x::a::I".to_owned(), PathKind::Import)
            ]
        );
    }

    #[test]
    fn an_inline_module_is_one_level_below_and_one_for_tests_is_left_out() {
        let text = "mod m {\n    use super::a;\n}\n#[cfg(test)]\n\
                    mod tests {\n    use super::b;\n    fn f() { if x { crate::c() } }\n}\nuse super::d;\n";
        assert_eq!(paths(text, &["x"]), ["2:x::a a", "9:d d"]);
    }

    #[test]
    fn a_file_is_placed_by_its_path() {
        let place = |path: &str| {
            super::place(&File::of(path, ""))
                .map(|(package, module)| format!("{package} {}", module.join("::")))
        };
        assert_eq!(place("crates/x/src/a/b.rs").unwrap(), "crates/x a::b");
        assert_eq!(place("crates/x/src/a/mod.rs").unwrap(), "crates/x a");
        assert_eq!(place("xtask/src/lib.rs").unwrap(), "xtask ");
        for path in [
            "crates/x/src/a/tests.rs",
            "crates/x/src/tests/a.rs",
            "crates/x/tests/a.rs",
            "a/src/b.py",
        ] {
            assert_eq!(place(path), None, "{path}");
        }
    }
}
