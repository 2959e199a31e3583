//! The page with the table.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;

use super::list::JUDGES;

/// Verdict of a judge.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub(super) struct Verdict {
    pub(super) passed: u64,
    pub(super) failed: u64,
    pub(super) skipped: u64,
    pub(super) errors: u64,
    /// Reasons that tests were skipped, by their names.
    pub(super) skips: BTreeMap<String, String>,
}

/// A page, as it is and as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Page(BTreeMap<String, Row>);

/// The row of a judge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// The suite and its version.
    pub(super) suite: String,
    /// Numbers of tests that passed, failed and were skipped; none if the suite could not run.
    pub(super) numbers: Option<[u64; 3]>,
    /// Lines about what did not run.
    notes: Vec<String>,
}

const HEAD: &str = "\
# Judges

Suites that other people wrote, and tests of ours that use other people's clients, run against a server of this repository by
`cargo xtask judges`. No number of passed tests ever falls: the command fails if one does, and CI compares this table with the previous
commit's and with the suites that its tests run.

| judge | suite | passed | failed | skipped |
|---|---|---|---|---|
";
const NOTES: &str = "\n## What was not run\n\n";

impl Page {
    /// Reads a page.
    pub(super) fn read(text: &str) -> Self {
        let mut rows = BTreeMap::new();
        for line in text.lines() {
            if let Some((name, row)) = Row::read(line) {
                rows.insert(name, row);
            } else if let Some(row) = noted(line).and_then(|name| rows.get_mut(name)) {
                row.notes.push(line.to_owned());
            }
        }
        Self(rows)
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = (&str, &Row)> {
        self.0.iter().map(|(name, row)| (name.as_str(), row))
    }

    pub(super) fn row(&self, name: &str) -> Option<&Row> {
        self.0.get(name)
    }

    /// Sets the row of a judge.
    pub(super) fn set(&mut self, name: &str, suite: &str, verdict: Result<&Verdict, &str>) {
        let (numbers, notes) = match verdict {
            Ok(verdict) => {
                let note = |(reason, tests): (&str, usize)| format!("- `{name}`, {tests} skipped: {reason}");
                let notes = by_reason(&verdict.skips).into_iter().map(note).collect();
                let failed = verdict.failed + verdict.errors;
                (Some([verdict.passed, failed, verdict.skipped]), notes)
            }
            Err(reason) => (None, vec![format!("- `{name}`: {reason}")]),
        };
        let suite = suite.to_owned();
        self.0.insert(
            name.to_owned(),
            Row {
                suite,
                numbers,
                notes,
            },
        );
    }

    /// The text, with the judges in the order of their list.
    pub(super) fn text(&self) -> String {
        let (mut page, mut notes) = (HEAD.to_owned(), String::new());
        for judge in JUDGES {
            let Some(row) = self.0.get(judge.name) else {
                continue;
            };
            let numbers = match row.numbers {
                Some([passed, failed, skipped]) => format!("{passed} | {failed} | {skipped}"),
                None => "– | – | –".to_owned(),
            };
            let _ = writeln!(page, "| `{}` | {} | {numbers} |", judge.name, row.suite);
            for note in &row.notes {
                let _ = writeln!(notes, "{note}");
            }
        }
        if !notes.is_empty() {
            page += NOTES;
            page += &notes;
        }
        page
    }
}

impl Row {
    fn read(line: &str) -> Option<(String, Self)> {
        let cells: Vec<_> = line
            .strip_prefix("| `")?
            .strip_suffix(" |")?
            .split(" | ")
            .collect();
        let [name, suite, numbers @ ..] = cells.as_slice() else {
            return None;
        };
        let numbers: Vec<u64> = numbers.iter().filter_map(|number| number.parse().ok()).collect();
        let row = Self {
            suite: (*suite).to_owned(),
            numbers: numbers.try_into().ok(),
            notes: Vec::new(),
        };
        Some((name.trim_end_matches('`').to_owned(), row))
    }

    /// Number of tests that passed.
    pub(super) fn passed(&self) -> u64 {
        self.numbers.map_or(0, |[passed, ..]| passed)
    }
}

/// The judge that a line about what did not run names.
fn noted(line: &str) -> Option<&str> {
    let (name, _) = line.strip_prefix("- `")?.split_once('`')?;
    Some(name)
}

/// Counts the skipped tests of each reason.
fn by_reason(skips: &BTreeMap<String, String>) -> BTreeMap<&str, usize> {
    let mut reasons = BTreeMap::new();
    for reason in skips.values() {
        *reasons.entry(reason.as_str()).or_default() += 1;
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read_back_and_says_why_tests_did_not_run() {
        let verdict = Verdict {
            passed: 12,
            failed: 1,
            skipped: 2,
            errors: 1,
            skips: [("one", "needs a GPU"), ("two", "needs a GPU")]
                .map(|(name, reason)| (name.to_owned(), reason.to_owned()))
                .into(),
        };
        let mut page = Page::default();
        page.set(JUDGES[0].name, JUDGES[0].suite, Ok(&verdict));
        page.set(JUDGES[1].name, "`a` of b", Err("not run: `X` names a folder"));
        let text = page.text();
        assert!(text.contains("| 12 | 2 | 2 |"), "{text}");
        assert!(text.contains(", 2 skipped: needs a GPU"), "{text}");
        assert!(text.contains(": not run: `X` names a folder"), "{text}");
        assert_eq!(Page::read(&text), page);
        let passed = page.rows().map(|(_, row)| row.passed());
        assert_eq!(passed.collect::<Vec<_>>(), [12, 0]);
    }

    #[test]
    fn one_row_is_replaced_and_the_others_stay() {
        let mut page = Page::default();
        for judge in JUDGES {
            page.set(
                judge.name,
                judge.suite,
                Ok(&Verdict {
                    passed: 1,
                    ..Verdict::default()
                }),
            );
        }
        let before = page.text();
        let mut again = Page::read(&before);
        again.set(
            JUDGES[0].name,
            JUDGES[0].suite,
            Ok(&Verdict {
                passed: 7,
                ..Verdict::default()
            }),
        );
        let changed: Vec<_> = before
            .lines()
            .zip(again.text().lines().map(str::to_owned).collect::<Vec<_>>())
            .filter(|(was, is)| was != is)
            .map(|(_, is)| is)
            .collect();
        assert_eq!(changed.len(), 1, "{changed:?}");
        assert!(changed[0].contains("| 7 | 0 | 0 |"), "{changed:?}");
    }
}
