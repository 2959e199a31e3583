//! Whose sessions they are.

use std::fmt;

/// Whose sessions, files and artifacts they are. What belongs to another owner does not exist for this one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(String);

impl Owner {
    /// An owner by the name under which callers are told apart, such as the id of a key; never a key itself.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// The one owner where callers are not told apart.
    pub fn local() -> Self {
        Self::new("local")
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owner({:?})", self.0)
    }
}
