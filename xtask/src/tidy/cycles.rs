//! No cycle of imports inside a crate crosses a folder, and those of files stay small.
//!
//! The nodes are a crate's top-level modules, the edges their imports. Modules that are single
//! files may import each other; a cycle through a folder is a violation. Inside some folders, the
//! nodes are the files, and no cycle may have more of them than a ceiling.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::Violation;
use super::modules::{self, CratePath, PathKind};
use super::tree::File;

mod files;

pub(super) use files::violations as file_violations;

/// One import that an edge stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ImportSite {
    path: String,
    line: usize,
}

/// Imports between modules or files, by their names.
#[derive(Debug, Default)]
struct ImportGraph(BTreeMap<String, BTreeMap<String, ImportSite>>);

/// The top-level modules of one crate.
#[derive(Debug, Default)]
struct Package {
    folders: BTreeSet<String>,
    modules: BTreeSet<String>,
    /// Modules of the names that the crate's root imports.
    root: BTreeMap<String, String>,
    imports: ImportGraph,
}

/// Cycles of all crates.
#[derive(Debug)]
pub(super) struct Cycles(BTreeMap<String, Package>);

impl Cycles {
    /// Reads the imports of every crate.
    pub(super) fn of(files: &[File]) -> Self {
        let mut packages: BTreeMap<String, Package> = BTreeMap::new();
        let placed: Vec<_> = files
            .iter()
            .filter_map(|file| Some((file, modules::place(file)?)))
            .collect();
        for (_, (package, module)) in &placed {
            packages.entry((*package).to_owned()).or_default().add(module);
        }
        // Names that roots import are needed to read the other files.
        for (file, (package, _)) in placed.iter().filter(|(_, (_, module))| module.is_empty()) {
            let uses = modules::used(file.tokens(), &[]);
            if let Some(package) = packages.get_mut(*package) {
                package.learn_names(uses);
            }
        }
        for (file, (package, module)) in placed.iter().filter(|(_, (_, module))| !module.is_empty()) {
            if let Some(package) = packages.get_mut(*package) {
                package.learn_imports(file, module);
            }
        }
        Self(packages)
    }

    /// Rejects every import that is on a cycle through a folder.
    pub(super) fn violations(&self) -> Vec<Violation> {
        let of = |package: &Package| -> Vec<Violation> {
            let edges = package.cyclic().into_iter();
            edges.map(|(from, to)| package.violation(from, to)).collect()
        };
        self.0.values().flat_map(of).collect()
    }
}

impl ImportGraph {
    /// Adds an import, whose first place is kept.
    fn add(&mut self, from: &str, to: &str, place: ImportSite) {
        let targets = self.0.entry(from.to_owned()).or_default();
        targets.entry(to.to_owned()).or_insert(place);
    }

    fn targets(&self, from: &str) -> impl Iterator<Item = &str> {
        let edges = self.0.get(from);
        edges.into_iter().flat_map(BTreeMap::keys).map(String::as_str)
    }

    /// Finds the shortest way from one module to another.
    fn way<'a>(&'a self, from: &'a str, to: &str) -> Option<Vec<&'a str>> {
        let mut ways = VecDeque::from([vec![from]]);
        let mut seen = BTreeSet::from([from]);
        while let Some(way) = ways.pop_front() {
            let last = *way.last()?;
            if last == to {
                return Some(way);
            }
            for next in self.targets(last).filter(|next| seen.insert(next)) {
                ways.push_back([way.as_slice(), &[next]].concat());
            }
        }
        None
    }

    fn reached<'a>(&'a self, from: &'a str) -> BTreeSet<&'a str> {
        let mut reached = BTreeSet::new();
        let mut open = vec![from];
        while let Some(module) = open.pop() {
            open.extend(self.targets(module).filter(|next| reached.insert(*next)));
        }
        reached
    }
}

impl Package {
    fn add(&mut self, module: &[&str]) {
        let Some(top) = module.first() else { return };
        self.modules.insert((*top).to_owned());
        if module.len() > 1 {
            self.folders.insert((*top).to_owned());
        }
    }

    fn learn_names(&mut self, uses: Vec<CratePath>) {
        for used in uses.into_iter().filter(|used| used.kind != PathKind::Code) {
            if used.path.len() > 1 && self.modules.contains(&used.path[0]) {
                self.root.insert(used.name, used.path[0].clone());
            }
        }
    }

    fn learn_imports(&mut self, file: &File, module: &[&str]) {
        let from = module[0];
        for CratePath { path, line, .. } in modules::used(file.tokens(), module) {
            let Some(first) = path.first() else { continue };
            let to = if self.modules.contains(first) {
                first
            } else if let Some(behind) = self.root.get(first) {
                behind
            } else {
                continue;
            };
            if to != from {
                let path = file.path.clone();
                self.imports.add(from, to, ImportSite { path, line });
            }
        }
    }

    /// Lists the imports of and by folders that are on a cycle: every cycle through a folder has two of them.
    fn cyclic(&self) -> Vec<(&str, &str)> {
        let names = self.modules.iter().map(String::as_str);
        let reached: BTreeMap<&str, BTreeSet<&str>> =
            names.map(|name| (name, self.imports.reached(name))).collect();
        let on_one = |a: &str, b: &str| reached[a].contains(b) && reached[b].contains(a);
        let crosses = |a: &str, b: &str| self.folders.contains(a) || self.folders.contains(b);
        let edges = self
            .imports
            .0
            .iter()
            .flat_map(|(from, edges)| edges.keys().map(|to| (from.as_str(), to.as_str())));
        edges
            .filter(|(from, to)| crosses(from, to) && on_one(from, to))
            .collect()
    }

    fn violation(&self, from: &str, to: &str) -> Violation {
        let place = &self.imports.0[from][to];
        let back = self.imports.way(to, from).unwrap_or_default();
        let steps = back.windows(2).map(|pair| {
            let ImportSite { path, line } = &self.imports.0[pair[0]][pair[1]];
            format!("`{}` imports `{}` ({path}:{line})", pair[0], pair[1])
        });
        let steps: Vec<_> = steps.collect();
        Violation {
            path: place.path.clone(),
            line: place.line,
            message: format!(
                "`{from}` imports `{to}`, which makes a cycle: {}",
                steps.join(", ")
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycles(files: &[(&str, &str)]) -> Cycles {
        let files: Vec<_> = files
            .iter()
            .map(|(path, text)| File::of(&format!("crates/x/src/{path}"), text))
            .collect();
        Cycles::of(&files)
    }

    fn messages(cycles: &Cycles) -> Vec<String> {
        cycles.violations().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_cycle_through_a_folder_is_rejected_with_its_files() {
        let found = cycles(&[
            ("lib.rs", "mod c;\npub use c::Thing;"),
            ("a/mod.rs", "mod b;"),
            ("a/b.rs", "\nuse crate::Thing;"),
            ("c.rs", "use super::d;"),
            ("d.rs", "fn f() { crate::a::b() }"),
            ("e.rs", "use crate::a;"),
        ]);
        assert_eq!(
            messages(&found)[0],
            "crates/x/src/a/b.rs:2: `a` imports `c`, which makes a cycle: \
             `c` imports `d` (crates/x/src/c.rs:1), `d` imports `a` (crates/x/src/d.rs:1)"
        );
    }

    #[test]
    fn files_side_by_side_may_import_each_other() {
        let found = cycles(&[
            ("a.rs", "use crate::b;"),
            ("b.rs", "use crate::a;"),
            ("c/mod.rs", "use crate::a;"),
        ]);
        assert_eq!(messages(&found), [""; 0]);
    }
}
