//! Checks the rules of this codebase that no compiler checks.
//!
//! Every rule is a plain function from a file, from all files or from the workspace's metadata, to
//! [`Violation`]s, and has a test that breaks it. The whole also runs under `cargo test
//! --workspace`.

use std::path::Path;
use std::{fmt, thread};

use anyhow::Result;

mod banners;
mod boundaries;
mod cycles;
mod docs;
mod footprint;
mod imports;
mod modules;
mod names;
mod phrases;
mod session;
mod sizes;
mod skips;
mod strings;
mod style;
mod tokens;
mod tree;
mod types;
mod unsafety;

use cycles::Cycles;
use tree::File;
use types::Types;

/// One broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    path: String,
    line: usize,
    message: String,
}

impl Violation {
    fn new(file: &File, line: usize, message: impl Into<String>) -> Self {
        Self {
            path: file.path.clone(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// Result of a check of the whole tree.
#[derive(Debug, Default)]
pub struct TidyReport {
    /// Broken rules.
    pub violations: Vec<Violation>,
    /// Things worth a look that break no rule.
    pub notes: Vec<String>,
}

/// Checks the tree at `root`, prints what was found and tells whether it is tidy.
pub fn run(root: &Path) -> Result<bool> {
    let report = check(root)?;
    for note in &report.notes {
        println!("note: {note}");
    }
    for violation in &report.violations {
        eprintln!("{violation}");
    }
    println!("tidy: {} violations", report.violations.len());
    Ok(report.violations.is_empty())
}

/// Checks the tree at `root`.
pub fn check(root: &Path) -> Result<TidyReport> {
    let files = tree::files(root)?;
    let mut report = TidyReport {
        violations: imports::check(&imports::packages(root)?),
        notes: files.iter().filter_map(sizes::note).collect(),
    };
    report.violations.extend(footprint::violations(root)?);
    let types = Types::of(&files);
    report.violations.extend(check_each(&files));
    report.violations.extend(strings::unused(&files));
    report.violations.extend(boundaries::check(&files));
    report.violations.extend(session::violations(&files));
    report.violations.extend(style::violations(&files));
    report.violations.extend(Cycles::of(&files).violations());
    report.violations.extend(cycles::file_violations(&files));
    report.violations.extend(types.repeated());
    report.violations.extend(types.unused());
    Ok(report)
}

/// Checks every file by itself, on all processors: reading the tokens of all Rust files takes a
/// second or two.
fn check_each(files: &[File]) -> Vec<Violation> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    // Files of one folder are alike, so each processor gets every n-th file.
    let part = |first: usize| -> Vec<Violation> {
        let own = files.iter().skip(first).step_by(processors);
        own.flat_map(check_one).collect()
    };
    let mut all = Vec::new();
    thread::scope(|scope| {
        let parts: Vec<_> = (0..processors)
            .map(|first| scope.spawn(move || part(first)))
            .collect();
        for part in parts {
            all.extend(part.join().expect("no check panics"));
        }
    });
    all.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    all
}

fn check_one(file: &File) -> Vec<Violation> {
    let checks = [
        banners::check,
        docs::check,
        names::check,
        phrases::check,
        sizes::check,
        skips::check,
        strings::check,
        unsafety::check,
    ];
    checks.iter().flat_map(|check| check(file)).collect()
}
