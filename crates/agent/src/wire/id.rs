//! Ids of responses and items: a prefix and 160 random bits.

use std::fmt::Write as _;

/// Generates ids. Those of the operating system's generator cannot be guessed.
#[derive(Clone, Debug, Default)]
pub struct Ids {
    counted: Option<u64>,
}

impl Ids {
    /// Creates a generator of random ids.
    pub const fn random() -> Self {
        Self { counted: None }
    }

    /// Creates a generator of ids that count from 1, for reproducible transcripts.
    pub const fn counted() -> Self {
        Self { counted: Some(0) }
    }

    /// Returns a new id such as `ci_4f…`.
    pub fn mint(&mut self, prefix: &str) -> String {
        if let Some(count) = &mut self.counted {
            *count += 1;
            return format!("{prefix}_{count}");
        }
        let mut id = format!("{prefix}_");
        for byte in random() {
            // Writing to a string cannot fail.
            let _ = write!(id, "{byte:02x}");
        }
        id
    }
}

/// Returns bytes of the operating system's generator.
fn random() -> [u8; 20] {
    let mut bytes = [0; 20];
    let mut filled = 0;
    while filled < bytes.len() {
        // For so few bytes, the call only fails if it is interrupted.
        filled +=
            rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()).unwrap_or(0);
    }
    bytes
}
