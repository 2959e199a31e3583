//! Tests that are expected to fail: lists that only become shorter.

use std::path::PathBuf;

/// Number of entries in each list. An entry that was taken out lowers its number here; none is raised.
const ENTRIES: [(&str, usize); 2] = [("2025-11-25", 8), ("2026-07-28", 14)];

/// The list of a revision.
pub(crate) fn file(revision: &str) -> PathBuf {
    let folder = cellblock_testkit::workspace_root().join("tests/clients/mcp");
    folder.join(format!("expected-failures-{revision}.yml"))
}

#[test]
fn no_more_is_expected_to_fail_than_was_before_and_each_for_a_reason() {
    for (revision, entries) in ENTRIES {
        let text = std::fs::read_to_string(file(revision)).unwrap();
        let listed: Vec<_> = text.lines().filter(|line| line.contains("- ")).collect();
        assert_eq!(listed.len(), entries, "{revision}: {listed:#?}");
        for entry in listed {
            assert!(entry.starts_with("  - "), "{entry}");
            let (_, reason) = entry.split_once(" # ").unwrap_or_default();
            assert!(!reason.is_empty(), "`{entry}` has no reason");
        }
    }
}
