//! The check that no number falls, which costs CI nothing: it reads what the tests that ran have recorded.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use super::PAGE;
use super::list::{JUDGES, Judge};
use super::table::{Page, Row, Verdict};
use crate::{is_everything_required, target_folder};

/// A line that a test has recorded.
#[derive(Debug, Deserialize)]
struct VerdictLine {
    judge: String,
    #[serde(flatten)]
    verdict: Verdict,
}

/// The file of what tests record.
pub(super) fn file(root: &Path) -> PathBuf {
    target_folder(root).join("judged.jsonl")
}

/// Forgets what earlier runs have recorded.
pub(crate) fn begin(root: &Path) {
    // It may not be there.
    let _ = fs::remove_file(file(root));
}

/// Reads what tests have recorded since the beginning; of several runs, the worst counts.
pub(super) fn recorded(file: &Path) -> Result<BTreeMap<String, Verdict>> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let mut all: BTreeMap<String, Verdict> = BTreeMap::new();
    for line in text.lines() {
        let VerdictLine { judge, verdict } =
            serde_json::from_str(line).with_context(|| format!("read `{line}` of {}", file.display()))?;
        let worst = all.get(&judge).is_none_or(|it| verdict.passed < it.passed);
        if worst {
            all.insert(judge, verdict);
        }
    }
    Ok(all)
}

/// Compares the table with what the tests have recorded, and with the table of the commit before.
pub(crate) fn check(root: &Path) -> Result<()> {
    let page = Page::read(&fs::read_to_string(root.join(PAGE)).context("read the table of judges")?);
    let mut problems = differences(&page, &recorded(&file(root))?, is_everything_required());
    match before(root) {
        Ok(text) => problems.extend(fallen(&page, &Page::read(&text))),
        Err(error) => println!("{PAGE} is not compared with the commit before: {error:#}"),
    }
    if !problems.is_empty() {
        bail!("{PAGE}:\n{}", problems.join("\n"));
    }
    Ok(())
}

/// The page of the commit before, which for a merge is that of the branch it goes into.
fn before(root: &Path) -> Result<String> {
    let mut git = Command::new("git");
    git.current_dir(root).args(["show", &format!("HEAD^:{PAGE}")]);
    let output = git.output().context("run git")?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Returns the differences between the table and the recorded results of tests.
fn differences(page: &Page, recorded: &BTreeMap<String, Verdict>, is_required: bool) -> Vec<String> {
    let difference = |judge: &Judge| {
        let name = judge.name;
        let Some(row) = page.row(name) else {
            return Some(format!("- `{name}` has no row; run `cargo xtask judges {name}`"));
        };
        let (was, reported) = (row.passed(), recorded.get(name));
        match reported {
            None if judge.is_in_ci && is_required => {
                Some(format!("- no test has reported the numbers of `{name}`"))
            }
            Some(now) if now.passed < was => Some(format!(
                "- `{name}`: {} tests pass, and {was} did before",
                now.passed
            )),
            Some(now) if now.passed > was => Some(format!(
                "- `{name}`: {} tests pass, and the table says {was}; run `cargo xtask judges {name}`",
                now.passed
            )),
            _ => None,
        }
    };
    JUDGES.iter().filter_map(difference).collect()
}

/// Numbers that are lower than they were, of suites that are the same.
pub(super) fn fallen(now: &Page, before: &Page) -> Vec<String> {
    let fell = |(name, was): (&str, &Row)| {
        let is = now.row(name);
        if is.is_some_and(|row| row.suite != was.suite) {
            return None;
        }
        let (is, was) = (is.map_or(0, Row::passed), was.passed());
        (is < was).then(|| format!("- `{name}`: {is} tests pass, and {was} did before"))
    };
    before.rows().filter_map(fell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passing(passed: u64) -> Verdict {
        Verdict {
            passed,
            ..Verdict::default()
        }
    }

    fn page(passed: u64) -> Page {
        let mut page = Page::default();
        for judge in JUDGES {
            page.set(judge.name, judge.suite, Ok(&passing(passed)));
        }
        page
    }

    #[test]
    fn a_number_that_differs_from_the_table_is_reported_with_its_judge() {
        let name = JUDGES.iter().find(|judge| judge.is_in_ci).unwrap().name;
        let told = |passed| differences(&page(5), &[(name.to_owned(), passing(passed))].into(), false);
        assert_eq!(told(5), Vec::<String>::new());
        assert_eq!(told(4), [format!("- `{name}`: 4 tests pass, and 5 did before")]);
        assert!(told(6)[0].contains(&format!("run `cargo xtask judges {name}`")));
    }

    #[test]
    fn a_judge_of_ci_that_says_nothing_is_missed_where_everything_is_required() {
        let silent = differences(&page(5), &BTreeMap::new(), true);
        assert_eq!(silent.len(), JUDGES.iter().filter(|judge| judge.is_in_ci).count());
        assert_eq!(
            differences(&page(5), &BTreeMap::new(), false),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_table_may_rise_but_not_fall_unless_the_suite_is_another() {
        assert_eq!(fallen(&page(6), &page(5)), Vec::<String>::new());
        assert_eq!(fallen(&page(4), &page(5)).len(), JUDGES.len());
        // A row that is gone has fallen to nothing.
        assert_eq!(fallen(&Page::default(), &page(5)).len(), JUDGES.len());
        let mut other = page(5);
        other.set(JUDGES[0].name, "another version", Ok(&passing(1)));
        assert_eq!(fallen(&other, &page(5)), Vec::<String>::new());
    }

    #[test]
    fn of_several_runs_the_worst_counts() {
        let folder = tempfile::tempdir().unwrap();
        let lines = [
            r#"{"judge":"a","passed":3}"#,
            r#"{"judge":"a","passed":2}"#,
            r#"{"judge":"a","passed":4}"#,
        ];
        let file = folder.path().join("judged.jsonl");
        assert!(recorded(&file).unwrap().is_empty());
        fs::write(&file, lines.join("\n")).unwrap();
        assert_eq!(recorded(&file).unwrap()["a"].passed, 2);
    }

    #[test]
    fn the_table_has_numbers_of_every_judge_and_no_test_fails() {
        let root = crate::workspace_root();
        let page = Page::read(&fs::read_to_string(root.join(PAGE)).unwrap());
        for judge in JUDGES {
            let row = page
                .row(judge.name)
                .unwrap_or_else(|| panic!("no row of {}", judge.name));
            assert_eq!(row.suite, judge.suite, "{}", judge.name);
            assert!(
                row.numbers
                    .is_some_and(|[passed, failed, _]| passed > 0 && failed == 0),
                "{}",
                judge.name
            );
        }
        assert_eq!(page.rows().count(), JUDGES.len());
        assert_eq!(page.text(), fs::read_to_string(root.join(PAGE)).unwrap());
    }
}
