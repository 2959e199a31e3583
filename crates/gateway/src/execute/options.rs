//! How the sandbox server of one call is bounded.

use std::time::Duration;

/// How `POST /execute` is bounded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecuteOptions {
    /// How many executions may run at a time; further ones are told to come back.
    pub concurrent: usize,
    /// The most bytes of a request's body.
    pub max_body: usize,
    /// How long a request's body may take to come.
    pub body_time: Duration,
    /// How long a program runs that does not say how long it needs.
    pub timeout: Duration,
    /// The longest that it may ask for; more is refused, not cut.
    pub longest: Duration,
    /// The most bytes of each of stdout and stderr in an answer: the first and the last halves of it.
    pub stream_bytes: usize,
    /// The most files in an answer.
    pub files: u32,
    /// The most bytes of one file in an answer.
    pub file_bytes: u64,
    /// The most bytes of all files in an answer.
    pub all_file_bytes: u64,
}

impl Default for ExecuteOptions {
    fn default() -> Self {
        Self {
            concurrent: 3,
            max_body: 10 << 20,
            body_time: Duration::from_secs(30),
            timeout: Duration::from_secs(30),
            longest: Duration::from_hours(1),
            stream_bytes: 10_000_000,
            files: 64,
            file_bytes: 10 << 20,
            all_file_bytes: 32 << 20,
        }
    }
}
