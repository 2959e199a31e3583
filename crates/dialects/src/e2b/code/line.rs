//! Lines of an execution's answer.

use std::time::SystemTime;

use serde::Serialize;

use super::super::control::iso;
use super::result::ResultLine;

/// A line.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Line {
    NumberOfExecutions {
        execution_count: u64,
    },
    Stdout {
        text: String,
        timestamp: String,
    },
    Stderr {
        text: String,
        timestamp: String,
    },
    Result(Box<ResultLine>),
    Error {
        name: String,
        value: String,
        traceback: String,
    },
    /// After some silence, so that the end of a client's connection is noticed.
    Keepalive,
    EndOfExecution,
}

impl Line {
    pub(super) fn stdout(text: String) -> Self {
        let timestamp = iso(SystemTime::now());
        Self::Stdout { text, timestamp }
    }

    pub(super) fn stderr(text: String) -> Self {
        let timestamp = iso(SystemTime::now());
        Self::Stderr { text, timestamp }
    }

    pub(super) fn error(name: &str, value: impl Into<String>) -> Self {
        let (name, value) = (name.to_owned(), value.into());
        Self::Error {
            traceback: format!("{name}: {value}\n"),
            name,
            value,
        }
    }
}
