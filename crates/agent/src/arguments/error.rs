//! What can be wrong with the arguments of a tool call.

/// Why the arguments of a tool call cannot be used. Offsets count bytes from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentsError {
    /// A byte that JSON does not allow where it stands.
    #[error("the arguments are not valid JSON: expected {expected} at byte {offset}; send one JSON object")]
    Malformed {
        /// Where it stands.
        offset: usize,
        /// What may stand there.
        expected: &'static str,
    },
    /// They end before the object does.
    #[error(
        "the arguments are not valid JSON: they end at byte {offset}, before the JSON object is complete"
    )]
    Unfinished {
        /// Where they end.
        offset: usize,
    },
    /// They are longer than allowed.
    #[error("the arguments have more than {limit} bytes, which is the limit; send less code at a time")]
    TooLong {
        /// The most bytes that are allowed.
        limit: usize,
    },
    /// Values are nested more deeply than allowed.
    #[error(
        "the arguments are nested more than {limit} levels deep at byte {offset}; send a flat JSON object"
    )]
    TooDeep {
        /// Where the limit is crossed.
        offset: usize,
        /// The deepest nesting that is allowed.
        limit: usize,
    },
    /// The field is there but is not a string.
    #[error("the value of `{field}` at byte {offset} of the arguments is not a string")]
    NotText {
        /// The field.
        field: String,
        /// Where its value begins.
        offset: usize,
    },
    /// The field is there twice, so that which of both is meant is not known.
    #[error("the arguments have `{field}` a second time at byte {offset}; send it once")]
    Repeated {
        /// The field.
        field: String,
        /// Where its second name ends.
        offset: usize,
    },
    /// The object is whole but lacks the field.
    #[error("the arguments lack `{field}`")]
    Missing {
        /// The field.
        field: String,
    },
}
