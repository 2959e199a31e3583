//! Options that become a connector, and the mistakes in them.

use std::path::Path;
use std::sync::Arc;

use cellblock_interpreter::connector::Connector;

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

/// A connector, or the mistakes in its options.
pub(crate) type ConnectorResult = Result<Arc<dyn Connector>, Vec<OptionMistake>>;

/// Options of one type of connectors.
pub(crate) trait ConnectorRecipe {
    /// Makes the connector, whose paths count from a folder. Without one, no secret and no file is read: the
    /// rest is checked. Connects to nothing.
    fn connector(&self, name: &str, folder: Option<&Path>) -> ConnectorResult;
}

/// Adds the mistakes of options to those that compiling them found.
pub(crate) fn checked<C: Connector + 'static>(
    mut mistakes: Vec<OptionMistake>,
    compiled: Result<C, Vec<OptionMistake>>,
) -> ConnectorResult {
    match compiled.map_err(|more| mistakes.extend(more)) {
        Ok(connector) if mistakes.is_empty() => Ok(Arc::new(connector)),
        _ => Err(mistakes),
    }
}
