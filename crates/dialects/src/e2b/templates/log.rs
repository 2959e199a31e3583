//! Log of a build, which clients read in parts.

use std::time::SystemTime;

use serde::Serialize;

use super::super::control::iso;

/// Maximum number of entries, of bytes of all of them, and of characters of one.
const MAX_ENTRIES: usize = 10_000;
const MAX_BYTES: usize = 1 << 20;
const MAX_LINE: usize = 4096;
/// Entries of one answer.
pub(super) const PART: usize = 100;

/// Severity of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum LogLevel {
    Info,
    Warn,
    Error,
}

/// An entry of a log.
#[derive(Clone, Debug, Serialize)]
pub(super) struct LogEntry {
    timestamp: String,
    pub(super) message: String,
    level: LogLevel,
    step: String,
}

/// The log of a build.
#[derive(Debug, Default)]
pub(super) struct BuildLog {
    entries: Vec<LogEntry>,
    bytes: usize,
}

impl BuildLog {
    /// Adds a line of a step.
    pub(super) fn push(&mut self, level: LogLevel, step: &str, line: &str) {
        if self.entries.len() > MAX_ENTRIES || self.bytes > MAX_BYTES {
            return;
        }
        let mut message: String = line.chars().take(MAX_LINE).collect();
        self.bytes += message.len();
        let mut level = level;
        if self.entries.len() == MAX_ENTRIES || self.bytes > MAX_BYTES {
            level = LogLevel::Warn;
            message = format!(
                "further output is left out: a log has at most {MAX_ENTRIES} lines and {MAX_BYTES} bytes"
            );
        }
        self.entries.push(LogEntry {
            timestamp: iso(SystemTime::now()),
            message,
            level,
            step: step.to_owned(),
        });
    }

    /// Returns entries from an offset on.
    pub(super) fn part(&self, offset: usize, limit: usize) -> Vec<LogEntry> {
        let part = self.entries.iter().skip(offset).take(limit.min(PART));
        part.cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_bounded_and_says_what_it_leaves_out() {
        let mut log = BuildLog::default();
        log.push(LogLevel::Info, "1", &"x".repeat(MAX_LINE + 1));
        assert_eq!(log.part(0, PART)[0].message.len(), MAX_LINE);
        for _ in 0..2 * MAX_ENTRIES {
            log.push(LogLevel::Info, "1", "line");
        }
        assert_eq!(log.entries.len(), MAX_ENTRIES + 1);
        let last = log.part(MAX_ENTRIES, PART);
        assert!(last[0].message.starts_with("further output is left out"));
        assert_eq!(log.part(0, 1_000).len(), PART);
        let mut large = BuildLog::default();
        for _ in 0..=MAX_BYTES / MAX_LINE {
            large.push(LogLevel::Info, "1", &"x".repeat(MAX_LINE));
        }
        let count = large.entries.len();
        assert!(large.part(count - 1, 1)[0].message.starts_with("further output"));
        large.push(LogLevel::Info, "1", "more");
        assert_eq!(large.entries.len(), count);
    }
}
