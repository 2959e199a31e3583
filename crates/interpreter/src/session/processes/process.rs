//! Processes of a session, as its handles describe them.

use std::collections::BTreeMap;
use std::ops::Range;

use cellblock_protocol::{Stream as ProcessStream, TerminalSize};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::signal;
use crate::error::{Error, Result};
use crate::session::runtime::capture::whole_start;

/// Maximum number of rows, and of columns, of a terminal.
pub const MAX_TERMINAL: u16 = 4096;
/// Maximum size in bytes of a command with its environment.
const MAX_COMMAND: usize = 128 * 1024;
/// Directory of the sandbox with the files of output.
pub(super) const OUTPUTS: &str = "/tmp/.cellblock";

/// A program to start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessOrder {
    /// The program and its arguments; a bare name is searched along `PATH`.
    pub command: Vec<String>,
    /// Environment variables, in addition to those of the sandbox's commands.
    pub env: BTreeMap<String, String>,
    /// Working directory; by default `/workspace`.
    pub directory: Option<String>,
    /// Whether it reads input that is sent later; otherwise its standard input is empty.
    pub stdin: bool,
    /// Size of a terminal for it, with its standard input, output and error stream. Its `TERM` is
    /// `xterm-256color` unless `env` has another.
    pub terminal: Option<TerminalSize>,
}

/// State of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProcessState {
    /// It is running.
    #[default]
    Running,
    /// It exited.
    Exited,
    /// A signal killed it.
    Killed,
    /// It ended with its sandbox, and its output is gone.
    Lost,
}

/// A process of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessReport {
    /// Its ID in the session, such as `p1`.
    pub id: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its state.
    pub state: ProcessState,
    /// Exit code, if it exited.
    pub exit_code: Option<i32>,
    /// Name of the signal that killed it, such as `SIGTERM`.
    pub signal: Option<String>,
    /// Whether it was started with an open standard input.
    pub stdin: bool,
    /// Whether it was started with a terminal.
    pub terminal: bool,
    /// Time of its start, in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// Time of its end, in milliseconds since 1970.
    pub ended_unix_ms: Option<u64>,
    /// File of the sandbox with the first 16 MiB of its output.
    pub output_file: String,
}

/// Part of a process's output: what it wrote to stdout and stderr, in one sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessOutput {
    /// Offset of the first byte.
    pub offset: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Offset from which to read on.
    pub next: u64,
    /// Number of bytes between the requested offset and the first byte, which are neither in memory
    /// nor in the file.
    pub lost: u64,
    /// Number of bytes that it has written until now.
    pub total: u64,
    /// Whether it has ended and these are its last bytes.
    pub eof: bool,
    /// Ranges of the bytes from stderr, in ascending order. Of a process that has alternated thousands of
    /// times between its streams, the oldest bytes count as those of stdout; a terminal has only one stream.
    pub stderr: Vec<Range<usize>>,
}

impl ProcessReport {
    /// Returns the number of the signal that killed it.
    pub(crate) fn signal_number(&self) -> Option<i32> {
        signal::number(self.signal.as_deref()?)
    }

    /// Returns its state in words, such as `exited with code 3`.
    pub fn state_in_words(&self) -> String {
        match (self.state, self.exit_code, &self.signal) {
            (ProcessState::Running, ..) => "running".to_owned(),
            (ProcessState::Exited, Some(code), _) => format!("exited with code {code}"),
            (ProcessState::Killed, _, Some(signal)) => format!("killed by {signal}"),
            (ProcessState::Lost, ..) => "ended with its sandbox".to_owned(),
            (ProcessState::Exited | ProcessState::Killed, ..) => "ended".to_owned(),
        }
    }
}

impl ProcessOutput {
    /// Returns the bytes with their streams, in their order.
    pub fn parts(&self) -> impl Iterator<Item = (ProcessStream, &[u8])> {
        let bounds = self.stderr.iter().flat_map(|part| [part.start, part.end]);
        let mut from = 0;
        let streams = [ProcessStream::Stdout, ProcessStream::Stderr].into_iter().cycle();
        let parts = bounds
            .chain([self.bytes.len()])
            .zip(streams)
            .map(move |(to, stream)| {
                let part = self.bytes.get(from..to).unwrap_or_default();
                from = to;
                (stream, part)
            });
        parts.filter(|(_, part)| !part.is_empty())
    }

    /// Returns the bytes as text. A character that is not complete yet is left for the next read;
    /// bytes that are not UTF-8 are replaced.
    pub fn into_text(mut self) -> (String, u64) {
        if !self.eof {
            let whole = whole_start(&self.bytes).len();
            // Four bytes cannot be the beginning of one character.
            if whole > 0 || self.bytes.len() >= 4 {
                self.next -= (self.bytes.len() - whole) as u64;
                self.bytes.truncate(whole);
            }
        }
        (String::from_utf8_lossy(&self.bytes).into_owned(), self.next)
    }
}

impl ProcessOrder {
    /// Rejects what cannot be started.
    pub(super) fn check(&self) -> Result<()> {
        if let Some(size) = self.terminal {
            check_size(size)?;
        }
        if self.command.first().is_none_or(String::is_empty) {
            return wrong("command", "name a program".to_owned());
        }
        for name in self.env.keys() {
            if name.is_empty() || name.contains('=') {
                return wrong("env", format!("`{name}` is not the name of a variable"));
            }
        }
        let pairs = self.env.iter().flat_map(|(name, value)| [name, value]);
        let texts: Vec<_> = self.command.iter().chain(pairs).chain(&self.directory).collect();
        if texts.iter().any(|text| text.contains('\0')) {
            return wrong("command", "it contains a NUL character".to_owned());
        }
        let bytes: usize = texts.iter().map(|text| text.len()).sum();
        if bytes > MAX_COMMAND {
            let reason = format!("it has {bytes} bytes with its environment, the limit is {MAX_COMMAND}");
            return wrong("command", reason);
        }
        match &self.directory {
            Some(directory) if !directory.starts_with('/') => {
                wrong("directory", format!("`{directory}` is not an absolute path"))
            }
            _ => Ok(()),
        }
    }
}

pub(super) fn check_size(size: TerminalSize) -> Result<()> {
    for (name, count) in [("rows", size.rows), ("columns", size.columns)] {
        if !(1..=MAX_TERMINAL).contains(&count) {
            let reason = format!("`{count}` {name} are not between 1 and {MAX_TERMINAL}");
            return wrong("terminal", reason);
        }
    }
    Ok(())
}

fn wrong(name: &'static str, reason: String) -> Result<()> {
    Err(Error::Argument {
        name,
        missing: false,
        reason,
    })
}

/// The file that keeps a process's output.
pub(super) fn output_file(id: &str) -> String {
    format!("{OUTPUTS}/{id}.log")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(bytes: &[u8], eof: bool) -> ProcessOutput {
        ProcessOutput {
            offset: 10,
            bytes: bytes.to_vec(),
            next: 10 + bytes.len() as u64,
            lost: 0,
            total: 100,
            eof,
            stderr: Vec::new(),
        }
    }

    #[test]
    fn output_is_told_apart_by_its_streams_in_its_order() {
        use ProcessStream::{Stderr, Stdout};

        let mixed = |stderr: &[Range<usize>]| -> Vec<(ProcessStream, String)> {
            let output = ProcessOutput {
                stderr: stderr.to_vec(),
                ..output(b"abcdef", false)
            };
            let text = |part: &[u8]| String::from_utf8_lossy(part).into_owned();
            output
                .parts()
                .map(|(stream, part)| (stream, text(part)))
                .collect()
        };
        let told = |parts: &[(ProcessStream, &str)]| -> Vec<_> {
            parts
                .iter()
                .map(|(stream, text)| (*stream, (*text).to_owned()))
                .collect()
        };
        assert_eq!(mixed(&[]), told(&[(Stdout, "abcdef")]));
        assert_eq!(mixed(std::slice::from_ref(&(0..6))), told(&[(Stderr, "abcdef")]));
        let parts = told(&[(Stdout, "a"), (Stderr, "bc"), (Stdout, "de"), (Stderr, "f")]);
        assert_eq!(mixed(&[1..3, 5..6]), parts);
    }

    #[test]
    fn a_character_that_is_cut_is_read_the_next_time() {
        assert_eq!(output("aé".as_bytes(), false).into_text(), ("aé".to_owned(), 13));
        assert_eq!(output(b"a\xc3", false).into_text(), ("a".to_owned(), 11));
        assert_eq!(output(b"a\xc3", true).into_text(), ("a\u{fffd}".to_owned(), 12));
        assert_eq!(output(b"\xff\xff\xff\xff", false).into_text().1, 14);
    }

    #[test]
    fn an_order_that_cannot_be_started_names_the_argument() {
        let order = |command: &[&str]| ProcessOrder {
            command: command.iter().map(|&it| it.to_owned()).collect(),
            ..ProcessOrder::default()
        };
        order(&["sleep", "1"]).check().unwrap();
        let long = "x".repeat(MAX_COMMAND);
        for wrong in [
            order(&[]),
            order(&[""]),
            order(&["a", "b\0"]),
            order(&["a", &long]),
        ] {
            let error = wrong.check().unwrap_err().to_string();
            assert!(error.starts_with("`command`: "), "{error}");
        }
        let mut wrong = order(&["a"]);
        wrong.env.insert("A=B".to_owned(), String::new());
        assert_eq!(
            wrong.check().unwrap_err().to_string(),
            "`env`: `A=B` is not the name of a variable"
        );
        let wrong = ProcessOrder {
            directory: Some("work".to_owned()),
            ..order(&["a"])
        };
        assert_eq!(
            wrong.check().unwrap_err().to_string(),
            "`directory`: `work` is not an absolute path"
        );
        let wrong = ProcessOrder {
            terminal: Some(TerminalSize { rows: 0, columns: 80 }),
            ..order(&["a"])
        };
        assert_eq!(
            wrong.check().unwrap_err().to_string(),
            "`terminal`: `0` rows are not between 1 and 4096"
        );
    }
}
