//! What can be wrong with the arguments of a tool call.

/// Why the arguments of a tool call cannot be used. Offsets count bytes from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentsError {
    /// A byte that JSON does not allow where it stands.
    #[error("read the arguments: expected {expected} at byte {offset}; send one JSON object")]
    Malformed {
        /// Where it stands.
        offset: usize,
        /// What may stand there.
        expected: &'static str,
    },
    /// They end before the object does.
    #[error("read the arguments: they end at byte {offset}, before the JSON object does")]
    Unfinished {
        /// Where they end.
        offset: usize,
    },
    /// They are longer than allowed.
    #[error("read the arguments: more than the {limit} bytes that are allowed; send less code at a time")]
    TooLong {
        /// The most bytes that are allowed.
        limit: usize,
    },
    /// Values are nested more deeply than allowed.
    #[error("read the arguments: nested more than {limit} deep at byte {offset}")]
    TooDeep {
        /// Where the limit is crossed.
        offset: usize,
        /// The deepest nesting that is allowed.
        limit: usize,
    },
    /// The field is there but is not a string.
    #[error("read the arguments: the value of `{field}` at byte {offset} is not a string")]
    NotText {
        /// The field.
        field: String,
        /// Where its value begins.
        offset: usize,
    },
    /// The field is there twice, so that which of both is meant is not known.
    #[error("read the arguments: `{field}` is there a second time at byte {offset}; send it once")]
    Repeated {
        /// The field.
        field: String,
        /// Where its second name ends.
        offset: usize,
    },
    /// The object is whole but lacks the field.
    #[error("read the arguments: `{field}` is missing")]
    Missing {
        /// The field.
        field: String,
    },
}
