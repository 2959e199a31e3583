//! The tests that a run has skipped, by reason, from the records that they leave.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde::Deserialize;

use crate::target_folder;

/// Number of tests that are named for each reason.
const NAMED: usize = 5;

/// A line that `cellblock_testkit` or the kernel's tests have written.
#[derive(Debug, Deserialize)]
struct SkipRecord {
    test: String,
    capability: String,
    reason: String,
}

/// The file of records: `CELLBLOCK_SKIPS`, or one in the target directory.
fn skips_file(root: &Path) -> PathBuf {
    let named = env::var_os("CELLBLOCK_SKIPS").map(PathBuf::from);
    root.join(named.unwrap_or_else(|| target_folder(root).join("skips.jsonl")))
}

/// Forgets what earlier runs have recorded.
pub(crate) fn forget_skips(root: &Path) {
    // It may not be there.
    let _ = fs::remove_file(skips_file(root));
}

/// Lists what has been recorded since then.
pub(crate) fn skips(root: &Path) -> String {
    listed(&fs::read_to_string(skips_file(root)).unwrap_or_default())
}

/// Groups records by what is lacking and why, the largest group first. A test that ran several
/// times counts once.
fn listed(records: &str) -> String {
    let mut reasons: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in records.lines() {
        let (reason, test) = match serde_json::from_str(line) {
            Ok(SkipRecord {
                test,
                capability,
                reason,
            }) => (format!("{capability}: {reason}"), test),
            Err(error) => (format!("a record that cannot be read: {error}"), line.to_owned()),
        };
        reasons.entry(reason).or_default().insert(test);
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, tests)| std::cmp::Reverse(tests.len()));
    let mut list = "== skipped tests ==\n".to_owned();
    if reasons.is_empty() {
        list.push_str("none\n");
    }
    for (reason, tests) in &reasons {
        let _ = writeln!(list, "{:>5}  {reason}", tests.len());
        for test in tests.iter().take(NAMED) {
            let _ = writeln!(list, "         {test}");
        }
        if tests.len() > NAMED {
            let _ = writeln!(list, "         and {} more", tests.len() - NAMED);
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(test: &str, capability: &str, reason: &str) -> String {
        let line = serde_json::json!({"test": test, "capability": capability, "reason": reason});
        format!("{line}\n")
    }

    #[test]
    fn skips_are_counted_by_reason_and_at_most_five_tests_of_each_are_named() {
        let mut records = record("walls: boots", "kvm", "no `/dev/kvm`");
        for number in (1..=7).rev() {
            records += &record(&format!("records: case {number}"), "postgres", "no `initdb`");
        }
        // As a further run over another backend records it.
        records += &record("records: case 1", "postgres", "no `initdb`");
        assert_eq!(
            listed(&records),
            "== skipped tests ==\n    \
             7  postgres: no `initdb`\n         \
             records: case 1\n         \
             records: case 2\n         \
             records: case 3\n         \
             records: case 4\n         \
             records: case 5\n         \
             and 2 more\n    \
             1  kvm: no `/dev/kvm`\n         \
             walls: boots\n"
        );
    }

    #[test]
    fn a_run_that_skips_nothing_says_so_and_a_broken_record_is_shown() {
        assert_eq!(listed(""), "== skipped tests ==\nnone\n");
        assert!(listed("{\"test\":\n").ends_with("\n         {\"test\":\n"));
    }
}
