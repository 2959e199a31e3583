//! Cycles of imports between the files of a folder.

use std::collections::BTreeMap;

use super::{ImportGraph, ImportSite};
use crate::tidy::Violation;
use crate::tidy::modules::{self, CratePath, PathKind};
use crate::tidy::tree::File;

/// Folders, and the maximum number of their files on one cycle; lower one when its number has fallen.
const CEILINGS: [(&str, usize); 2] = [("crates/interpreter/src/", 8), ("crates/agent/src/turn/", 4)];
/// Maximum number of re-exports between a name and its file.
const MAX_REEXPORTS: usize = 8;

/// The files of a crate by their modules, with the paths that they name.
#[derive(Default)]
struct CrateFiles<'a>(BTreeMap<Vec<String>, (&'a str, Vec<CratePath>)>);

/// Rejects a cycle through more files of a folder than its ceiling.
pub(in crate::tidy) fn violations(files: &[File]) -> Vec<Violation> {
    let over = |&(folder, most): &(&str, usize)| {
        let imports = CrateFiles::around(folder, files).imports(folder);
        let cycle = imports.largest_cycle();
        (cycle.len() > most).then(|| Violation {
            path: cycle[0].to_owned(),
            line: 1,
            message: format!(
                "{} files of `{folder}` import each other in a cycle, the ceiling is {most}; move what they \
                 share into files that import none of them: {}",
                cycle.len(),
                cycle.join(", ")
            ),
        })
    };
    CEILINGS.iter().filter_map(over).collect()
}

impl<'a> CrateFiles<'a> {
    /// Reads the files of a folder's crate.
    fn around(folder: &str, files: &'a [File]) -> Self {
        let mut all = Self::default();
        for file in files {
            if let Some((package, module)) = modules::place(file)
                && folder.starts_with(&format!("{package}/src/"))
            {
                let used = modules::used(file.tokens(), &module);
                let module = module.into_iter().map(str::to_owned).collect();
                all.0.insert(module, (file.path.as_str(), used));
            }
        }
        all
    }

    /// Returns the imports between the files of a folder. A re-export is none: those who use its name
    /// import the file behind it.
    fn imports(&self, folder: &str) -> ImportGraph {
        let mut graph = ImportGraph::default();
        for (from, used) in self.0.values().filter(|(path, _)| path.starts_with(folder)) {
            for used in used.iter().filter(|used| used.kind != PathKind::Reexport) {
                let to = self.defining(&used.path, MAX_REEXPORTS);
                if let Some(to) = to.filter(|to| to != from && to.starts_with(folder)) {
                    let (path, line) = ((*from).to_owned(), used.line);
                    graph.add(from, to, ImportSite { path, line });
                }
            }
        }
        graph
    }

    /// Returns the file that defines the name at the end of a path.
    fn defining(&self, path: &[String], reexports: usize) -> Option<&'a str> {
        let depth = (0..=path.len())
            .rev()
            .find(|depth| self.0.contains_key(&path[..*depth]))?;
        let (file, used) = &self.0[&path[..depth]];
        let imported = path.get(depth).and_then(|name| {
            let by_name = |used: &&CratePath| used.kind != PathKind::Code && used.name == *name;
            used.iter().find(by_name)
        });
        match imported {
            Some(import) if reexports > 0 => {
                self.defining(&[&import.path[..], &path[depth + 1..]].concat(), reexports - 1)
            }
            _ => Some(*file),
        }
    }
}

impl ImportGraph {
    /// Returns the files of the largest set of which each imports each other, directly or not.
    fn largest_cycle(&self) -> Vec<&str> {
        let files = self.0.keys().map(String::as_str);
        let reached: BTreeMap<&str, _> = files.map(|file| (file, self.reached(file))).collect();
        let back = |file: &str, other: &str| reached.get(other).is_some_and(|from| from.contains(file));
        let cycles = reached.iter().map(|(file, others)| {
            let both = others.iter().copied().filter(|other| back(file, other));
            both.collect::<Vec<_>>()
        });
        cycles.max_by_key(Vec::len).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the violations of a folder whose files import the next one, the last the first.
    fn ring(count: usize, last: &str) -> Vec<Violation> {
        let folder = CEILINGS[1].0;
        let names: Vec<_> = (0..count).map(|number| format!("f{number}")).collect();
        let declared = names
            .iter()
            .map(|name| format!("mod {name};\npub use {name}::{name};\n"));
        let mut files = vec![File::of(
            &format!("{folder}mod.rs"),
            &declared.collect::<String>(),
        )];
        for (number, name) in names.iter().enumerate() {
            let text = match names.get(number + 1) {
                Some(next) => format!("use super::{next};\n"),
                None => last.to_owned(),
            };
            files.push(File::of(&format!("{folder}{name}.rs"), &text));
        }
        violations(&files)
    }

    #[test]
    fn a_cycle_of_more_files_than_the_ceiling_is_rejected() {
        let last = "use crate::turn::f0;\n";
        assert_eq!(ring(4, last), []);
        assert_eq!(ring(6, "use crate::wire;\n"), []);
        let found = ring(5, last);
        assert_eq!(
            found[0].to_string(),
            "crates/agent/src/turn/f0.rs:1: 5 files of `crates/agent/src/turn/` import each other in a cycle, \
             the ceiling is 4; move what they share into files that import none of them: \
             crates/agent/src/turn/f0.rs, crates/agent/src/turn/f1.rs, crates/agent/src/turn/f2.rs, \
             crates/agent/src/turn/f3.rs, crates/agent/src/turn/f4.rs"
        );
    }

    #[test]
    fn a_name_stands_for_the_file_behind_its_reexports() {
        let file = |path: &str, text: &str| File::of(&format!("crates/agent/src/{path}"), text);
        let files = [
            file("lib.rs", "mod turn;\npub use turn::Reply;\n"),
            file("turn/mod.rs", "mod a;\nmod b;\npub use a::Reply;\nuse b::f;\n"),
            file("turn/a.rs", "pub struct Reply;\n"),
            file("turn/b.rs", "use crate::Reply;\nfn f() { super::g() }\n"),
        ];
        let folder = CEILINGS[1].0;
        let imports = CrateFiles::around(folder, &files).imports(folder);
        assert_eq!(
            imports.largest_cycle(),
            ["crates/agent/src/turn/b.rs", "crates/agent/src/turn/mod.rs"]
        );
        let targets: Vec<_> = imports.targets("crates/agent/src/turn/b.rs").collect();
        assert_eq!(
            targets,
            ["crates/agent/src/turn/a.rs", "crates/agent/src/turn/mod.rs"]
        );
    }
}
