//! Reason that a cell was refused, written for a model that repairs it.

use schemars::JsonSchema;
use serde::Serialize;

/// An error in a cell or in its declaration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Rejection {
    /// Code of the error, such as `unknown_alias`; `guard` for code that violates a rule of the
    /// guard.
    pub code: String,
    /// The guard's rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The line of the code.
    pub line: Option<u32>,
    /// The field of the request, such as `inputAliases[0]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Valid values of the field, if they can be listed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub valid: Vec<String>,
    /// Description of the problem and how to fix it.
    pub message: String,
}

impl Rejection {
    /// A mistake in a field.
    pub fn of_field(code: &str, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            field: Some(field.into()),
            message: message.into(),
            ..Self::default()
        }
    }

    /// Lists what the field may hold.
    #[must_use]
    pub fn with_valid<S: Into<String>>(mut self, valid: impl IntoIterator<Item = S>) -> Self {
        self.valid = valid.into_iter().map(Into::into).collect();
        self
    }
}

impl From<cellblock_protocol::Rejection> for Rejection {
    fn from(found: cellblock_protocol::Rejection) -> Self {
        Self {
            code: "guard".to_owned(),
            rule: Some(found.rule),
            line: found.line,
            message: found.message,
            ..Self::default()
        }
    }
}
