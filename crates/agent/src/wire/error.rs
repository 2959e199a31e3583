//! Errors of the API: `{"error": {"message", "type", "param", "code"}}` with an HTTP status.

use serde::{Serialize, Serializer};

/// An error of the API.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// Kind of the error.
    pub kind: ErrorKind,
    /// Code for programs, such as `unknown_parameter`.
    pub code: Option<String>,
    /// Message for people.
    pub message: String,
    /// Invalid parameter, such as `tools[0].name`.
    pub param: Option<String>,
}

/// Kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The request is invalid.
    InvalidRequestError,
    /// The request is too large.
    #[serde(rename = "invalid_request_error")]
    TooLarge,
    /// The object does not exist.
    NotFound,
    /// The client sent too many requests.
    TooManyRequests,
    /// The model's provider failed.
    ModelError,
    /// The gateway failed.
    ServerError,
    /// Something that the gateway needs is unavailable for now.
    #[serde(rename = "server_error")]
    Unavailable,
    /// The gateway's disk is full.
    #[serde(rename = "server_error")]
    StorageFull,
}

impl ApiError {
    /// Creates an error about an invalid parameter.
    pub fn invalid(param: impl Into<String>, code: &str, message: impl Into<String>) -> Self {
        Self {
            kind: ErrorKind::InvalidRequestError,
            code: Some(code.to_owned()),
            message: message.into(),
            param: Some(param.into()),
        }
    }

    /// Returns the HTTP status.
    pub const fn status(&self) -> u16 {
        match self.kind {
            ErrorKind::InvalidRequestError => 400,
            ErrorKind::TooLarge => 413,
            ErrorKind::NotFound => 404,
            ErrorKind::TooManyRequests => 429,
            ErrorKind::ModelError | ErrorKind::ServerError => 500,
            ErrorKind::Unavailable => 503,
            ErrorKind::StorageFull => 507,
        }
    }
}

impl Serialize for ApiError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct ErrorBody<'a> {
            error: Fields<'a>,
        }
        ErrorBody {
            error: Fields::from(self),
        }
        .serialize(serializer)
    }
}

/// The serialized fields of an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Fields<'a> {
    message: &'a str,
    r#type: ErrorKind,
    param: Option<&'a str>,
    code: Option<&'a str>,
}

impl<'a> From<&'a ApiError> for Fields<'a> {
    fn from(error: &'a ApiError) -> Self {
        Self {
            message: &error.message,
            r#type: error.kind,
            param: error.param.as_deref(),
            code: error.code.as_deref(),
        }
    }
}
