//! Checks the rules of this codebase that no compiler checks.
//!
//! Every rule is a plain function from a file, or from the workspace's metadata, to [`Violation`]s, and has a
//! test that breaks it. The whole also runs under `cargo test --workspace`.

use std::fmt;
use std::path::Path;

use anyhow::Result;

mod banners;
mod docs;
mod imports;
mod names;
mod sizes;
mod skips;
mod strings;
mod tokens;
mod tree;
mod unsafety;

use tree::File;

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

/// What a check of the whole tree found.
#[derive(Debug, Default)]
pub struct Report {
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
pub fn check(root: &Path) -> Result<Report> {
    let files = tree::files(root)?;
    let mut report = Report {
        violations: imports::check(&imports::packages(root)?),
        notes: Vec::new(),
    };
    for file in &files {
        let per_file = [
            banners::check,
            docs::check,
            names::check,
            sizes::check,
            skips::check,
            strings::check,
            unsafety::check,
        ];
        report
            .violations
            .extend(per_file.iter().flat_map(|check| check(file)));
        report.notes.extend(sizes::note(file));
    }
    report.violations.extend(strings::unused(&files));
    Ok(report)
}
