//! Mistakes in the options of a connector.

/// A mistake in the options of a connector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionMistake {
    /// Keys that lead to the value.
    pub path: Vec<String>,
    /// The problem and its repair, as the end of a sentence that starts with the key.
    pub message: String,
}

impl OptionMistake {
    pub(crate) fn new(path: &[&str], message: impl Into<String>) -> Self {
        Self {
            path: path.iter().copied().map(str::to_owned).collect(),
            message: message.into(),
        }
    }

    /// Returns the mistake with keys that lead to where it was found.
    pub(crate) fn within(mut self, keys: &[&str]) -> Self {
        self.path.splice(0..0, keys.iter().copied().map(str::to_owned));
        self
    }
}
