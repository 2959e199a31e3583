//! Ids of responses and items: a prefix and 160 random bits.

use std::fmt::Write as _;

/// Makes ids. Those of the operating system's generator cannot be guessed.
#[derive(Clone, Debug, Default)]
pub struct Ids {
    counted: Option<u64>,
}

impl Ids {
    /// Random ids.
    pub const fn random() -> Self {
        Self { counted: None }
    }

    /// Ids that count from 1, for transcripts that have to be the same each time.
    pub const fn counted() -> Self {
        Self { counted: Some(0) }
    }

    /// A new id such as `ci_4f…`.
    pub fn mint(&mut self, prefix: &str) -> String {
        if let Some(count) = &mut self.counted {
            *count += 1;
            return format!("{prefix}_{count}");
        }
        let mut id = format!("{prefix}_");
        for byte in random() {
            // Writing to a string does not fail.
            let _ = write!(id, "{byte:02x}");
        }
        id
    }
}

/// Bytes of the operating system's generator.
fn random() -> [u8; 20] {
    let mut bytes = [0; 20];
    let mut filled = 0;
    while filled < bytes.len() {
        // The call cannot fail for so few bytes unless it is interrupted.
        filled +=
            rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()).unwrap_or(0);
    }
    bytes
}
