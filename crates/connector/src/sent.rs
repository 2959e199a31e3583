//! Parameters in the query and the body of a request.

/// A parameter that no template inserts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestParameter {
    pub(crate) parameter: String,
    /// Its name in the request.
    pub(crate) name: String,
    pub(crate) form: SentAs,
}

/// Place in a request at which a parameter is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SentAs {
    /// In the query, a list as one value with this character between its items, or else as repeated ones.
    Query(Option<char>),
    /// As a field of the JSON body.
    Field,
    /// As the JSON body.
    Body,
}
