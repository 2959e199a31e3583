//! Records what the suites of other projects' clients report, for the check of `docs/judges.md`.

use std::path::Path;

use serde_json::json;

use crate::places::target_dir;
use crate::skip::append;

/// Numbers of tests of a suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuiteCounts {
    /// Number of tests that passed.
    pub passed: u64,
    /// Number of tests that failed, or could not run.
    pub failed: u64,
    /// Number of tests that were skipped.
    pub skipped: u64,
}

impl SuiteCounts {
    /// Reads the numbers at the end of what Python's `unittest` or Node's TAP reporter prints.
    pub fn read(printed: &str) -> Option<Self> {
        Self::of_unittest(printed).or_else(|| Self::of_tap(printed))
    }

    /// Reads `Ran 4 tests in 0.1s` and `FAILED (failures=1, skipped=1)`.
    fn of_unittest(printed: &str) -> Option<Self> {
        let mut lines = printed.lines().rev().map(str::trim);
        let verdict = lines.find(|line| line.starts_with("OK") || line.starts_with("FAILED"))?;
        let ran = lines.find_map(|line| line.strip_prefix("Ran ")?.split(' ').next()?.parse::<u64>().ok())?;
        let (_, numbers) = verdict.trim_end_matches(')').split_once('(').unwrap_or_default();
        let of = |wanted: &str| {
            let mut numbers = numbers.split(", ").filter_map(|number| number.split_once('='));
            let number = numbers.find(|(name, _)| *name == wanted);
            number
                .and_then(|(_, number)| number.parse::<u64>().ok())
                .unwrap_or_default()
        };
        let (failed, skipped) = (of("failures") + of("errors"), of("skipped"));
        Some(Self {
            passed: ran.saturating_sub(failed + skipped),
            failed,
            skipped,
        })
    }

    /// Reads `# pass 3`, `# fail 1`, `# cancelled 0` and `# skipped 1`.
    fn of_tap(printed: &str) -> Option<Self> {
        let of = |name: &str| {
            let mut lines = printed.lines().rev().filter_map(|line| line.strip_prefix("# "));
            lines.find_map(|line| {
                line.strip_prefix(name)?
                    .strip_prefix(' ')?
                    .trim()
                    .parse::<u64>()
                    .ok()
            })
        };
        Some(Self {
            passed: of("pass")?,
            failed: of("fail")? + of("cancelled").unwrap_or_default(),
            skipped: of("skipped")? + of("todo").unwrap_or_default(),
        })
    }
}

/// Records the numbers of a suite under its name in `docs/judges.md`, where `cargo xtask ci`
/// compares them with the table.
pub fn judged(judge: &str, counts: SuiteCounts) {
    record(&target_dir().join("judged.jsonl"), judge, counts);
}

fn record(file: &Path, judge: &str, counts: SuiteCounts) {
    let SuiteCounts {
        passed,
        failed,
        skipped,
    } = counts;
    let line = json!({ "judge": judge, "passed": passed, "failed": failed, "skipped": skipped });
    append(file, &line, "the numbers of a suite");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(passed: u64, failed: u64, skipped: u64) -> SuiteCounts {
        SuiteCounts {
            passed,
            failed,
            skipped,
        }
    }

    #[test]
    fn numbers_are_read_from_what_unittest_prints() {
        let line = "-".repeat(70);
        let read =
            |verdict: &str| SuiteCounts::read(&format!("...\n{line}\nRan 9 tests in 1.2s\n\n{verdict}\n"));
        assert_eq!(read("OK"), Some(counts(9, 0, 0)));
        assert_eq!(read("OK (skipped=2)"), Some(counts(7, 0, 2)));
        assert_eq!(
            read("FAILED (failures=1, errors=2, skipped=1)"),
            Some(counts(5, 3, 1))
        );
    }

    #[test]
    fn numbers_are_read_from_what_node_prints() {
        let printed = "TAP version 13\nok 1 - # pass 7 of 9\n1..6\n# tests 6\n# pass 3\n# fail 1\n\
                       # cancelled 1\n# skipped 1\n# todo 0\n";
        assert_eq!(SuiteCounts::read(printed), Some(counts(3, 2, 1)));
    }

    #[test]
    fn a_suite_that_prints_no_numbers_has_none() {
        for printed in ["", "OK", "# pass 3", "Ran into a wall"] {
            assert_eq!(SuiteCounts::read(printed), None, "{printed}");
        }
    }

    #[test]
    fn numbers_are_recorded_as_one_line_of_json() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("judged.jsonl");
        record(&file, "a", counts(1, 2, 3));
        record(&file, "b", counts(4, 0, 0));
        let text = std::fs::read_to_string(&file).unwrap();
        let lines: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(
            lines[0],
            json!({"judge": "a", "passed": 1, "failed": 2, "skipped": 3})
        );
        assert_eq!(lines[1]["judge"], "b");
    }
}
