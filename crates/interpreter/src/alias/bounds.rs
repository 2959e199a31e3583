//! Limits on recorded results.

/// Limits on recorded results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Maximum number of results.
    pub count: usize,
    /// Maximum size of one result in bytes.
    pub bytes_each: u64,
    /// Maximum size of all results in bytes; equal ones count each time they are recorded.
    pub bytes_all: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            count: 1000,
            bytes_each: 256 << 20,
            bytes_all: 2 << 30,
        }
    }
}
