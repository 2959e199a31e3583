//! How much is recorded.

/// Bounds on recorded results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The most results.
    pub count: usize,
    /// The most bytes of one result.
    pub bytes_each: u64,
    /// The most bytes of all results; equal ones count as often as they are recorded.
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
