//! The outer form of a message: its kind, and its parts as text.

use rmcp::model::RequestId;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::failure::Failure;

/// A message whose parts were not read yet.
#[derive(Debug, Deserialize)]
pub(super) struct WireEnvelope<'a> {
    #[serde(default, borrow)]
    id: Option<&'a RawValue>,
    #[serde(default, borrow)]
    method: Option<std::borrow::Cow<'a, str>>,
    #[serde(default, borrow)]
    result: Option<&'a RawValue>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

/// Kind of a message.
#[derive(Debug)]
pub(super) enum MessageShape<'a> {
    /// A request, which requires a response.
    Request { id: RequestId, method: &'a str },
    /// A notification, which requires none.
    Notification(&'a str),
    /// A successful response.
    Result { id: RequestId, result: &'a RawValue },
    /// An error response, possibly without a request.
    Error { id: Option<RequestId> },
}

impl<'a> WireEnvelope<'a> {
    /// Reads the outer form. Checks that the inside is JSON without allocating memory for it.
    pub(super) fn read(text: &'a str) -> Result<Self, Failure> {
        if !text.trim_start().starts_with('{') {
            return Err(Failure::malformed("it is not a JSON object"));
        }
        serde_json::from_str(text).map_err(|error| Failure::unread("it is not valid JSON", error))
    }

    /// Returns the kind of the message.
    pub(super) fn shape(&self) -> Result<MessageShape<'_>, Failure> {
        match (&self.method, self.id, self.result, self.error) {
            (Some(method), None, None, None) => Ok(MessageShape::Notification(method)),
            (Some(method), Some(own), None, None) => Ok(MessageShape::Request { id: id(own)?, method }),
            (None, Some(own), Some(result), None) => Ok(MessageShape::Result { id: id(own)?, result }),
            (None, None, None, Some(_)) => Ok(MessageShape::Error { id: None }),
            (None, Some(own), None, Some(_)) => Ok(MessageShape::Error { id: Some(id(own)?) }),
            _ => Err(Failure::malformed("it is neither a request nor a response")),
        }
    }
}

/// Maximum size of an id in bytes.
const ID: usize = 256;

fn id(raw: &RawValue) -> Result<RequestId, Failure> {
    if raw.get().len() > ID {
        return Err(Failure::malformed("its `id` is too long"));
    }
    serde_json::from_str(raw.get())
        .map_err(|error| Failure::unread("its `id` is neither text nor a number", error))
}
