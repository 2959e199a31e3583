//! Console output of the machine, as a verdict.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

/// The lines of the console that count.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Transcript {
    /// Every program that ended.
    ended: Vec<ProgramEnd>,
    /// Number of skipped tests for each lacking capability.
    skipped: BTreeMap<String, usize>,
    /// The names of tests that failed.
    failures: Vec<String>,
    /// Whether the machine came to the end of its list.
    finished: bool,
}

/// Result of a program.
#[derive(Debug, PartialEq, Eq)]
struct ProgramEnd {
    name: String,
    status: i32,
    seconds: u64,
    passed: u64,
    failed: u64,
}

impl Transcript {
    pub(super) fn read(said: &str) -> Self {
        let mut transcript = Self::default();
        let (mut passed, mut failed) = (0, 0);
        for line in said.lines() {
            let words: Vec<_> = line.split_whitespace().collect();
            match words[..] {
                ["VM", "start", ..] => (passed, failed) = (0, 0),
                ["VM", "ended", name, status, seconds] => transcript.ended.push(ProgramEnd {
                    name: name.to_owned(),
                    status: status.parse().unwrap_or(-1),
                    seconds: seconds.parse().unwrap_or(0),
                    passed,
                    failed,
                }),
                ["VM", "skip", ..] => {
                    let record = line.strip_prefix("VM skip ").unwrap_or_default();
                    let record: Value = serde_json::from_str(record).unwrap_or_default();
                    let capability = record["capability"].as_str().unwrap_or("unknown");
                    *transcript.skipped.entry(capability.to_owned()).or_default() += 1;
                }
                ["VM", "done"] => transcript.finished = true,
                [
                    "test",
                    "result:",
                    _,
                    good,
                    "passed;",
                    bad,
                    "failed" | "failed;",
                    ..,
                ] => {
                    passed += good.parse::<u64>().unwrap_or(0);
                    failed += bad.parse::<u64>().unwrap_or(0);
                }
                ["test", name, "...", "FAILED"] => transcript.failures.push(name.to_owned()),
                _ => {}
            }
        }
        transcript
    }

    /// Returns the names of what failed among these, and of what did not end.
    pub(super) fn failed(&self, names: &[&str]) -> Vec<String> {
        let good = |name: &str| {
            let mut ended = self.ended.iter();
            ended.any(|ended| ended.name == name && ended.status == 0 && ended.failed == 0)
        };
        let mut failed: Vec<_> = names
            .iter()
            .filter(|name| !good(name))
            .map(ToString::to_string)
            .collect();
        if !self.finished {
            failed.push("the machine itself".to_owned());
        }
        failed
    }
}

impl fmt::Display for Transcript {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for it in &self.ended {
            let verdict = match it.status {
                0 => "passed".to_owned(),
                124 => "TIMEOUT".to_owned(),
                status => format!("FAILED ({status})"),
            };
            writeln!(
                out,
                "{:>5} s  {:<24} {verdict}: {} tests passed, {} failed",
                it.seconds, it.name, it.passed, it.failed
            )?;
        }
        for name in &self.failures {
            writeln!(out, "failed: {name}")?;
        }
        for (capability, count) in &self.skipped {
            writeln!(out, "skipped: {count} tests need `{capability}`")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "VM start jail-unit\n\
        test a ... ok\n\
        test result: ok. 25 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 3.87s\n\
        VM ended jail-unit 0 4\n\
        VM start jail-rooms\n\
        test result: ok. 33 passed; 0 failed\n\
        VM ended jail-rooms 0 2\n\
        VM start interpreter-it\n\
        test limits::memory ... FAILED\n\
        test result: FAILED. 7 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 9.00s\n\
        VM ended interpreter-it 101 9\n\
        VM skip {\"test\":\"a: b\",\"capability\":\"kvm\",\"reason\":\"none\"}\n";

    #[test]
    fn a_program_that_fails_or_does_not_end_is_named() {
        let said = format!("{SAID}VM done\n");
        let transcript = Transcript::read(&said);
        let names = ["jail-unit", "jail-rooms", "interpreter-it", "guest-unit"];
        assert_eq!(transcript.failed(&names), ["interpreter-it", "guest-unit"]);
        assert_eq!(transcript.failures, ["limits::memory"]);
    }

    #[test]
    fn a_machine_that_stops_early_fails() {
        let transcript = Transcript::read(SAID);
        assert_eq!(transcript.failed(&["jail-unit"]), ["the machine itself"]);
    }

    #[test]
    fn tests_and_skips_are_counted() {
        let report = Transcript::read(SAID).to_string();
        assert_eq!(
            report,
            "    4 s  jail-unit                passed: 25 tests passed, 0 failed\n    \
             2 s  jail-rooms               passed: 33 tests passed, 0 failed\n    \
             9 s  interpreter-it           FAILED (101): 7 tests passed, 1 failed\n\
             failed: limits::memory\n\
             skipped: 1 tests need `kvm`\n"
        );
    }
}
