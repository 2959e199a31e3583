//! Kernel messages, and how a WebSocket carries them.
//!
//! By default a message is a text of JSON; one with buffers is binary: their number and offsets as
//! big-endian `u32`, the JSON, the buffers. With the subprotocol `v1.kernel.websocket.jupyter.org`
//! every message is binary: the number of offsets and the offsets as little-endian `u64`, then the
//! channel's name, the four parts as JSON, and buffers.

use axum::extract::ws::Message as Frame;
use cellblock_settings::clock;
use chrono::{DateTime, SecondsFormat};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The subprotocol whose messages are all binary.
pub(super) const V1: &str = "v1.kernel.websocket.jupyter.org";
/// Version of the messages.
pub(super) const VERSION: &str = "5.3";

/// A message. What its buffers hold, nobody here reads.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(super) struct Message {
    pub(super) channel: String,
    pub(super) header: Map<String, Value>,
    #[serde(default)]
    pub(super) parent_header: Map<String, Value>,
    #[serde(default)]
    pub(super) metadata: Map<String, Value>,
    #[serde(default)]
    pub(super) content: Map<String, Value>,
}

/// Form in which a connection carries messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Default,
    V1,
}

impl Message {
    /// Its type, such as `execute_request`.
    pub(super) fn kind(&self) -> &str {
        self.header
            .get("msg_type")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// A field of its content as text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.content.get(name)?.as_str()
    }

    /// A flag of its content.
    pub(super) fn flag(&self, name: &str, default: bool) -> bool {
        self.content.get(name).and_then(Value::as_bool).unwrap_or(default)
    }

    /// Reads what a client sent; the error says what is wrong with it.
    pub(super) fn read(frame: &Frame, form: Form) -> Result<Self, String> {
        let malformed = |error: serde_json::Error| format!("the message is malformed: {error}");
        match (frame, form) {
            (Frame::Text(text), _) => serde_json::from_str(text).map_err(malformed),
            (Frame::Binary(bytes), Form::Default) => {
                let parts = split(bytes, |bytes| {
                    let (number, rest) = bytes.split_first_chunk::<4>()?;
                    Some((u32::from_be_bytes(*number).into(), rest))
                });
                let json = parts.as_ref().and_then(|parts| parts.first().copied());
                serde_json::from_slice(json.ok_or("the offsets of a binary message are wrong")?)
                    .map_err(malformed)
            }
            (Frame::Binary(bytes), Form::V1) => {
                let mut parts = split(bytes, |bytes| {
                    let (number, rest) = bytes.split_first_chunk::<8>()?;
                    Some((u64::from_le_bytes(*number), rest))
                })
                .ok_or("the offsets of a binary message are wrong")?;
                // The last offset is the end.
                parts.pop();
                let [channel, header, parent, metadata, content, ..] = parts[..] else {
                    return Err("a binary message has fewer than five parts".to_owned());
                };
                let object = |bytes| serde_json::from_slice(bytes).map_err(malformed);
                Ok(Self {
                    channel: String::from_utf8_lossy(channel).into_owned(),
                    header: object(header)?,
                    parent_header: object(parent)?,
                    metadata: object(metadata)?,
                    content: object(content)?,
                })
            }
            _ => Err("a message is text or binary".to_owned()),
        }
    }

    /// Writes it for a client.
    pub(super) fn write(&self, form: Form) -> Frame {
        match form {
            Form::Default => {
                let mut whole = json!(self);
                whole["msg_id"] = self.header.get("msg_id").cloned().into();
                whole["msg_type"] = self.kind().into();
                whole["buffers"] = json!([]);
                Frame::Text(whole.to_string().into())
            }
            Form::V1 => {
                let object = |part: &Map<String, Value>| json!(part).to_string().into_bytes();
                let parts = [
                    self.channel.clone().into_bytes(),
                    object(&self.header),
                    object(&self.parent_header),
                    object(&self.metadata),
                    object(&self.content),
                ];
                let count = parts.len() as u64 + 1;
                let mut at = 8 * (1 + count);
                let mut bytes = count.to_le_bytes().to_vec();
                for part in &parts {
                    bytes.extend(at.to_le_bytes());
                    at += part.len() as u64;
                }
                bytes.extend(at.to_le_bytes());
                bytes.extend(parts.concat());
                Frame::Binary(bytes.into())
            }
        }
    }
}

/// Splits a binary message at the offsets that it begins with. `next` reads a number.
fn split(bytes: &[u8], next: impl Fn(&[u8]) -> Option<(u64, &[u8])>) -> Option<Vec<&[u8]>> {
    let (count, mut rest) = next(bytes)?;
    // Each offset has at least four bytes.
    if count > bytes.len() as u64 / 4 {
        return None;
    }
    let mut offsets = Vec::new();
    for _ in 0..count {
        let (offset, left) = next(rest)?;
        offsets.push(usize::try_from(offset).ok()?);
        rest = left;
    }
    let ends = offsets.iter().skip(1).copied().chain([bytes.len()]);
    offsets
        .iter()
        .zip(ends)
        .map(|(start, end)| bytes.get(*start..end))
        .collect()
}

/// Returns the time now, as messages and models have it.
pub(super) fn now() -> String {
    date(clock::now().as_secs_f64())
}

/// Returns seconds since 1970 as a date.
pub(super) fn date(seconds: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "microseconds fit for 290,000 years"
    )]
    let time = DateTime::from_timestamp_micros((seconds * 1e6) as i64);
    time.unwrap_or_default()
        .to_rfc3339_opts(SecondsFormat::Micros, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Message {
        let whole = json!({
            "channel": "shell",
            "header": {"msg_id": "1", "msg_type": "execute_request"},
            "content": {"code": "é"},
        });
        serde_json::from_value(whole).unwrap()
    }

    #[test]
    fn a_message_is_read_as_it_was_written_in_both_forms() {
        for form in [Form::Default, Form::V1] {
            let frame = message().write(form);
            assert_eq!(Message::read(&frame, form).unwrap(), message());
        }
    }

    #[test]
    fn a_message_with_buffers_is_read_without_them() {
        let json = json!(message()).to_string().into_bytes();
        let mut bytes = 2_u32.to_be_bytes().to_vec();
        bytes.extend(12_u32.to_be_bytes());
        bytes.extend((12 + u32::try_from(json.len()).unwrap()).to_be_bytes());
        bytes.extend(&json);
        bytes.extend(b"buffer");
        let frame = Frame::Binary(bytes.into());
        assert_eq!(Message::read(&frame, Form::Default).unwrap(), message());
    }

    #[test]
    fn wrong_offsets_are_an_error_wherever_they_lead() {
        let Frame::Binary(good) = message().write(Form::V1) else {
            panic!("not binary")
        };
        for end in 0..good.len() {
            let cut = Frame::Binary(good.slice(..end));
            assert!(
                Message::read(&cut, Form::V1).is_err() || end >= good.len() - 4,
                "{end}"
            );
        }
        for at in 0..56 {
            for byte in [0, 1, 255] {
                let mut changed = good.to_vec();
                changed[at] = byte;
                let _ = Message::read(&Frame::Binary(changed.clone().into()), Form::V1);
                let _ = Message::read(&Frame::Binary(changed.into()), Form::Default);
            }
        }
        let endless = Frame::Binary(vec![255; 64].into());
        assert!(Message::read(&endless, Form::V1).is_err());
        assert!(Message::read(&endless, Form::Default).is_err());
    }
}
