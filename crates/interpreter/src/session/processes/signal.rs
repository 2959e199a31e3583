//! Signals that can be sent to a process.

use std::fmt;
use std::str::FromStr;

/// Names and numbers, which are those of Linux on x86-64 and aarch64.
const SIGNALS: [(&str, i32); 11] = [
    ("SIGHUP", 1),
    ("SIGINT", 2),
    ("SIGQUIT", 3),
    ("SIGKILL", 9),
    ("SIGUSR1", 10),
    ("SIGUSR2", 12),
    ("SIGTERM", 15),
    ("SIGCONT", 18),
    ("SIGSTOP", 19),
    ("SIGTSTP", 20),
    ("SIGWINCH", 28),
];
/// Names of further signals that end a process.
const OTHERS: [(&str, i32); 9] = [
    ("SIGILL", 4),
    ("SIGTRAP", 5),
    ("SIGABRT", 6),
    ("SIGBUS", 7),
    ("SIGFPE", 8),
    ("SIGSEGV", 11),
    ("SIGPIPE", 13),
    ("SIGALRM", 14),
    ("SIGSYS", 31),
];

/// A signal that can be sent to a process, read from its name: `SIGTERM` or `TERM`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessSignal(i32);

impl ProcessSignal {
    /// Asks a process to end.
    pub const TERM: Self = Self(15);
    /// Ends a process and everything that it started.
    pub const KILL: Self = Self(9);

    pub(super) const fn number(self) -> i32 {
        self.0
    }
}

/// Returns the name of a signal that ended a process.
pub(super) fn name(number: i32) -> String {
    let known = SIGNALS.iter().chain(&OTHERS).find(|(_, it)| *it == number);
    known.map_or_else(|| format!("signal {number}"), |(name, _)| (*name).to_owned())
}

/// Returns the number of a signal with such a name.
pub(super) fn number(name: &str) -> Option<i32> {
    let known = SIGNALS.iter().chain(&OTHERS).find(|(it, _)| *it == name);
    match known {
        Some((_, number)) => Some(*number),
        None => name.strip_prefix("signal ")?.parse().ok(),
    }
}

impl FromStr for ProcessSignal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let upper = text.to_ascii_uppercase();
        let bare = upper.strip_prefix("SIG").unwrap_or(&upper);
        let found = SIGNALS.iter().find(|(name, _)| &name[3..] == bare);
        found.map(|(_, number)| Self(*number)).ok_or_else(|| {
            let names: Vec<_> = SIGNALS.iter().map(|(name, _)| *name).collect();
            format!(
                "`{text}` is not the name of a signal; use one of {}",
                names.join(", ")
            )
        })
    }
}

impl fmt::Display for ProcessSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&name(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_read_by_their_names() {
        for text in ["SIGTERM", "TERM", "term", "SigTerm"] {
            assert_eq!(text.parse(), Ok(ProcessSignal::TERM), "{text}");
        }
        assert_eq!(ProcessSignal::KILL.to_string(), "SIGKILL");
        assert_eq!(name(11), "SIGSEGV");
        assert_eq!(name(40), "signal 40");
        for text in ["", "SIG", "15", "SIGSEGV", "TERMINATE"] {
            let error = text.parse::<ProcessSignal>().unwrap_err();
            assert!(error.starts_with(&format!(
                "`{text}` is not the name of a signal; use one of SIGHUP, "
            )));
        }
    }
}
