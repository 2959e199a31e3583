//! Values that programs get from the operator.

use std::collections::BTreeMap;
use std::fmt;

/// Values by name, and which of them are secrets.
#[derive(Clone, Default)]
pub struct GivenValues {
    /// All values.
    pub values: BTreeMap<String, String>,
    /// The values that are removed from everything that comes back.
    pub secrets: Vec<String>,
}

impl fmt::Debug for GivenValues {
    /// Without the values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GivenValues")
            .field(&self.values.keys().collect::<Vec<_>>())
            .finish()
    }
}
