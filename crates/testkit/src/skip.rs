//! Records every test that a machine could not run, and fails those that it should have run.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::{env, thread};

use crate::capability::Capability;
use crate::places::{target_dir, workspace_root};

/// Return value of a test that is skipped: `()` or `Ok(())`.
pub trait SkipResult {
    /// Makes the value.
    fn skipped() -> Self;
}

impl SkipResult for () {
    fn skipped() -> Self {}
}

impl<E> SkipResult for Result<(), E> {
    fn skipped() -> Self {
        Ok(())
    }
}

/// Tells whether this machine lacks `capability`, and records the test that goes without it.
///
/// Used through [`require!`](crate::require). Panics instead of skipping when everything is required and
/// the lack is not an expected one.
pub fn missing(capability: Capability, module: &str) -> bool {
    let Err(reason) = capability.detect() else {
        return false;
    };
    let test = running(module);
    record(&skips_file(), &test, capability.name(), &reason);
    let required = env::var_os("CELLBLOCK_REQUIRE_ALL").is_some_and(|value| value == "1");
    let expected = expected_skips(&workspace_root().join(".ci/expected-skips"));
    assert!(
        !required || expected.contains_key(capability.name()),
        "`{test}` needs `{}`, which this machine lacks: {reason}; \
         provide it, or list it in `.ci/expected-skips` with the reason",
        capability.name(),
    );
    true
}

/// Records that a test does not run over a backend that lacks something.
pub fn lacking(backend: &str, lack: &str, module: &str) {
    let reason = format!("the backend `{backend}` lacks `{lack}`");
    record(&skips_file(), &running(module), lack, &reason);
}

fn running(module: &str) -> String {
    let thread = thread::current();
    let name = thread.name();
    name.map_or_else(|| module.to_owned(), |name| format!("{module}: {name}"))
}

fn skips_file() -> PathBuf {
    env::var_os("CELLBLOCK_SKIPS").map_or_else(|| target_dir().join("skips.jsonl"), PathBuf::from)
}

fn record(file: &Path, test: &str, capability: &str, reason: &str) {
    let line = serde_json::json!({ "test": test, "capability": capability, "reason": reason });
    // A skip that leaves no trace would be a silent one.
    append(file, &line, "a skipped test");
}

/// Appends a record to a file of such lines.
pub(crate) fn append(file: &Path, line: &serde_json::Value, what: &str) {
    let appended = OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)
        .and_then(|mut file| {
            // One write, so that tests in several processes never interleave their lines.
            file.write_all(format!("{line}\n").as_bytes())
        });
    assert!(
        appended.is_ok(),
        "cannot record {what} in `{}`: {appended:?}",
        file.display()
    );
}

/// Reads a list of expected skips: a capability and the reason per line, `#` before a comment.
///
/// Lines without a reason do not count.
pub fn expected_skips(file: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(char::is_whitespace))
        .map(|(capability, reason)| (capability.to_owned(), reason.trim().to_owned()))
        .filter(|(_, reason)| !reason.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skip_is_one_json_line_with_test_capability_and_reason() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("skips.jsonl");
        record(&file, "a: b", "kvm", "no `/dev/kvm`");
        record(&file, "a: c", "root", "uid is 1000");
        assert_eq!(
            fs::read_to_string(&file).unwrap(),
            "{\"test\":\"a: b\",\"capability\":\"kvm\",\"reason\":\"no `/dev/kvm`\"}\n\
             {\"test\":\"a: c\",\"capability\":\"root\",\"reason\":\"uid is 1000\"}\n"
        );
    }

    #[test]
    fn comments_and_lines_without_a_reason_are_not_expected_skips() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("expected-skips");
        fs::write(&file, "# why\nkvm  no nested virtualisation\nroot\nlandlock \n").unwrap();
        let expected = expected_skips(&file);
        assert_eq!(
            expected.into_iter().collect::<Vec<_>>(),
            [("kvm".to_owned(), "no nested virtualisation".to_owned())]
        );
    }

    #[test]
    fn every_skip_that_ci_expects_names_a_known_capability() {
        let expected = expected_skips(&workspace_root().join(".ci/expected-skips"));
        let known = Capability::ALL.map(Capability::name);
        let unknown: Vec<_> = expected
            .keys()
            .filter(|name| !["module:", "python:"].iter().any(|kind| name.starts_with(kind)))
            .filter(|name| !known.contains(&name.as_str()))
            .collect();
        assert!(unknown.is_empty(), "unknown capabilities: {unknown:?}");
        assert!(
            !expected.is_empty(),
            "`.ci/expected-skips` is missing or lists nothing"
        );
    }
}
