//! Answers of Anthropic's Messages API, as events or as a whole, from the events of a response.
//!
//! ```text
//! EventKind ──MessageEvents──> events of a stream ──frame──> text/event-stream
//!                                      └──────────whole──> one message
//! ```

mod blocks;
mod events;
mod result;
#[cfg(test)]
mod tests;
mod whole;

use serde_json::{Value, json};

use super::error::ApiError;

pub use events::{ContainerLookup, ContainerReport, MessageEvents};
pub use whole::whole;

/// The tool that runs Python.
pub(super) const CODE: &str = "code_execution";
/// The tool that runs commands.
pub const BASH: &str = "bash_code_execution";
/// The tool that shows and edits files.
pub const EDITOR: &str = "text_editor_code_execution";

/// Prefix of ids of code execution.
const USE: &str = "srvtoolu_";

/// A comment in a silent stream, as an event that clients skip.
pub const PING: &str = "event: ping\ndata: {\"type\":\"ping\"}\n\n";

/// Returns the part of a block's id that its item has too.
pub(super) fn item_suffix(id: &str) -> &str {
    id.strip_prefix(USE).unwrap_or(id)
}

/// Returns the id of a block for an item of code or of a command.
fn use_id(item: &str) -> String {
    let suffix = item.split_once('_').map_or(item, |(_, suffix)| suffix);
    format!("{USE}{suffix}")
}

/// Returns an event as one frame of a `text/event-stream`.
pub fn frame(event: &Value) -> String {
    let name = event["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {event}\n\n")
}

/// Returns an error in the form of this API.
pub fn error(status: u16, message: &str, request_id: Option<&str>) -> Value {
    let kind = match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 | 529 => "overloaded_error",
        504 => "timeout_error",
        400..500 => "invalid_request_error",
        _ => "api_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": request_id})
}

/// Returns an event that ends a stream with an error.
fn failed(error: &ApiError) -> Value {
    self::error(error.status(), &error.message, None)
}
