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
}
