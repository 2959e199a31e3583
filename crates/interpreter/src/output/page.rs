//! Pages of long values.

use schemars::JsonSchema;
use serde::Serialize;

use super::TablePage;

/// A page of a value.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum OutputPage {
    /// Rows of a table.
    Rows(TablePage),
    /// Characters of a text.
    Text(TextPage),
}

/// A page of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TextPage {
    /// Number of the page, from 0.
    pub page: u64,
    /// Number of pages.
    pub pages: u64,
    /// Index of the first character, from 0.
    pub first_char: u64,
    /// Number of characters of the whole text.
    pub chars: u64,
    /// The characters.
    pub text: String,
}
