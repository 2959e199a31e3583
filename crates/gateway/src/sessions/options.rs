//! How sessions are bounded.

use std::time::Duration;

/// How the sessions API is bounded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionsOptions {
    /// The most sessions that one owner may have at a time.
    pub per_owner: usize,
    /// How long a session lives while nothing is asked of it, unless it says otherwise.
    pub idle: Duration,
    /// The longest that a session may ask for.
    pub longest_idle: Duration,
    /// How many finished cells a session keeps.
    pub cells: usize,
    /// The most bytes of JSON of the cells that it keeps; its last one is kept whatever its size.
    pub cell_bytes: usize,
    /// The most bytes of one upload: a file, an input, a dataset or an alias.
    pub upload_bytes: u64,
    /// The most bytes of all inputs and datasets of one session.
    pub data_bytes: u64,
    /// How many requests of one session may wait for the one that works.
    pub waiting: usize,
}

impl Default for SessionsOptions {
    fn default() -> Self {
        Self {
            per_owner: 50,
            idle: Duration::from_mins(15),
            longest_idle: Duration::from_hours(24),
            cells: 50,
            cell_bytes: 8 << 20,
            upload_bytes: 256 << 20,
            data_bytes: 1 << 30,
            waiting: 16,
        }
    }
}
