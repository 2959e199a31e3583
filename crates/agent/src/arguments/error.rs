//! Errors in the arguments of a tool call.

/// The reason why the arguments of a tool call cannot be used. Offsets count bytes from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentsError {
    /// A byte is not valid JSON at its position.
    #[error("the arguments are not valid JSON: expected {expected} at byte {offset}; send one JSON object")]
    Malformed {
        /// Position of the byte.
        offset: usize,
        /// Syntax that is valid at this position.
        expected: &'static str,
    },
    /// The arguments end before the object does.
    #[error(
        "the arguments are not valid JSON: they end at byte {offset}, before the JSON object is complete"
    )]
    Unfinished {
        /// Position of the end.
        offset: usize,
    },
    /// The arguments exceed the maximum size.
    #[error("the arguments have more than {limit} bytes, which is the limit; send less code at a time")]
    TooLong {
        /// Maximum size in bytes.
        limit: usize,
    },
    /// Values are nested too deeply.
    #[error(
        "the arguments are nested more than {limit} levels deep at byte {offset}; send a flat JSON object"
    )]
    TooDeep {
        /// Position of the first value that is too deep.
        offset: usize,
        /// Maximum nesting depth.
        limit: usize,
    },
    /// The field is not a string.
    #[error("the value of `{field}` at byte {offset} of the arguments is not a string")]
    NotText {
        /// Name of the field.
        field: String,
        /// Position of its value.
        offset: usize,
    },
    /// The field occurs twice, so its value is ambiguous.
    #[error("the arguments have `{field}` a second time at byte {offset}; send it once")]
    Repeated {
        /// Name of the field.
        field: String,
        /// Position after its second name.
        offset: usize,
    },
    /// The object is complete but lacks the field.
    #[error("the arguments lack `{field}`")]
    Missing {
        /// Name of the field.
        field: String,
    },
}
