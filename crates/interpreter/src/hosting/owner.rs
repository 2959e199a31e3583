//! Whose sessions they are.

use std::fmt;

/// Whose sessions, files and artifacts they are. What belongs to another owner does not exist for this one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(String);

impl Owner {
    /// Creates an owner from the name that identifies a caller, such as the id of a key; never a
    /// key itself.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// Returns the single owner for servers that do not distinguish callers.
    pub fn local() -> Self {
        Self::new("local")
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owner({:?})", self.0)
    }
}
