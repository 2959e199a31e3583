//! Ids of responses and items: a prefix and 160 random bits.

use cellblock_interpreter::mint;

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
        mint(&format!("{prefix}_"))
    }
}
