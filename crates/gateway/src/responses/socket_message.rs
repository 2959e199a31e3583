//! Messages of clients on a WebSocket: requests, each in a lane, and input for responses that run.

use cellblock_agent::wire::{ApiError, Ids, ResponseRequest};
use serde::Deserialize;
use serde_json::{Value, json};

/// Maximum number of characters of a lane's name, as in OpenAI's clients.
const MAX_LANE: usize = 256;

/// A message of a client.
#[derive(Debug, Default)]
pub(super) struct SocketMessage {
    pub(super) text: String,
    head: MessageHead,
}

/// Keys of a message that are read before its turn comes.
#[derive(Debug, Default, Deserialize)]
struct MessageHead {
    #[serde(default)]
    r#type: Value,
    /// Lane of the answer, which all its events repeat.
    #[serde(default)]
    stream_id: Value,
}

impl SocketMessage {
    /// Takes a message, which may be invalid.
    pub(super) fn of(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            head: serde_json::from_str(text).unwrap_or_default(),
        }
    }

    /// Returns the request, and whether the model is asked: not if it says `generate: false`, which makes
    /// a conversation ready to be gone on from.
    pub(super) fn request(&self) -> Result<(ResponseRequest, bool), ApiError> {
        let mut request = ResponseRequest::parse(self.text.as_bytes(), &mut Ids::random());
        // Errors have this order: the JSON, then its type, then the request.
        let body: Value = serde_json::from_str(&self.text).unwrap_or_default();
        if body.is_object() && body["type"] != "response.create" {
            let message = "`type` has to be `response.create`: it is the one message that clients send";
            return Err(ApiError::invalid("type", "invalid_value", message));
        }
        if !self.head.stream_id.is_null() && self.lane().is_none() {
            let message = format!("`stream_id` must be a string of 1 to {MAX_LANE} characters");
            return Err(ApiError::invalid("stream_id", "invalid_value", message));
        }
        if let Ok(request) = &mut request {
            // Here every response is streamed, and none goes on without its connection.
            request.stream = true;
            request.background = false;
        }
        Ok((request?, body["generate"] != false))
    }

    /// Returns the answer to input for a response that runs, which gives the input back.
    pub(super) fn steering(&self) -> Option<Value> {
        if self.head.r#type != "response.steer" {
            return None;
        }
        let body: Value = serde_json::from_str(&self.text).unwrap_or_default();
        let (response, input) = (&body["previous_response_id"], &body["input"]);
        let valid = response.is_string() && (input.is_string() || input.is_array());
        let (code, message) = if valid {
            (
                "steering_not_supported",
                "a response that runs takes no input here; send it in a `response.create` after its end",
            )
        } else {
            (
                "invalid_input",
                "`response.steer` requires a `previous_response_id` and an `input`, a string or an array",
            )
        };
        Some(json!({
            "type": "response.steer.failed",
            "sequence_number": 0,
            "error": {"type": "invalid_request_error", "code": code, "message": message},
            "steer": {"previous_response_id": response, "input": input},
        }))
    }

    /// Returns an event, a JSON object, with the lane of the message that it answers.
    pub(super) fn answer(&self, mut event: String) -> String {
        if let Some(lane) = self.lane()
            && event.pop() == Some('}')
        {
            event = format!("{event},\"stream_id\":{}}}", json!(lane));
        }
        event
    }

    /// Returns the lane of the answer, if it has a valid one.
    pub(super) fn lane(&self) -> Option<&str> {
        let lane = self.head.stream_id.as_str()?;
        (1..=MAX_LANE).contains(&lane.chars().count()).then_some(lane)
    }
}
