//! Messages of a program: one line each, of JSON.

use std::time::Duration;

use cellblock_interpreter::connector::{ConnectorError, ConnectorErrorKind, FetchAnswer};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::words::short_line;

/// Maximum number of characters of a program's text in an error.
const SHOWN: usize = 200;
/// Names of kinds of errors.
const KINDS: &str =
    "unauthorized, payment_required, rate_limit, provider, empty_data, parse, invalid_parameter or timeout";

/// Asks for the functions; `more` are further fields.
pub(super) fn functions(id: u64, more: &Map<String, Value>) -> Vec<u8> {
    let mut message = json!({"id": id, "method": "functions"});
    if let Some(fields) = message.as_object_mut() {
        fields.extend(more.clone());
    }
    line(&message)
}

pub(super) fn call(id: u64, function: &str, arguments: &Map<String, Value>) -> Vec<u8> {
    line(&json!({"id": id, "method": "call", "function": function, "arguments": arguments}))
}

pub(super) fn cancel(id: u64) -> Vec<u8> {
    line(&json!({"method": "cancel", "id": id}))
}

fn line(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

/// A line of a program.
#[derive(Debug)]
pub(super) struct Reply {
    /// The request that it answers.
    pub(super) id: u64,
    pub(super) body: ReplyBody,
}

#[derive(Debug)]
pub(super) enum ReplyBody {
    Answer(Result<FetchAnswer, ConnectorError>),
    /// An Arrow IPC stream of so many bytes follows.
    Arrow(u64),
}

#[derive(Deserialize)]
struct WrittenReply {
    id: u64,
    #[serde(default, deserialize_with = "present")]
    value: Option<Value>,
    rows: Option<Vec<Value>>,
    arrow: Option<u64>,
    error: Option<WrittenError>,
}

#[derive(Deserialize)]
struct WrittenError {
    #[serde(default)]
    kind: Option<String>,
    message: String,
    retry_after: Option<f64>,
    status: Option<u16>,
}

/// Distinguishes null from nothing.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Reply {
    /// Reads a line; the error continues a sentence that starts with the program.
    pub(super) fn read(line: &[u8]) -> Result<Self, String> {
        let written: WrittenReply = serde_json::from_slice(line).map_err(|error| {
            let text = short_line(&String::from_utf8_lossy(line), SHOWN);
            format!("printed a line that is not an answer ({error}): `{text}`; it must print only answers to stdout, and all else to stderr")
        })?;
        let WrittenReply {
            id,
            value,
            rows,
            arrow,
            error,
        } = written;
        let body = match (value, rows, arrow, error) {
            (Some(value), None, None, None) => ReplyBody::Answer(Ok(value.into())),
            (None, Some(rows), None, None) => ReplyBody::Answer(table(&rows)),
            (None, None, Some(length), None) => ReplyBody::Arrow(length),
            (None, None, None, Some(error)) => ReplyBody::Answer(Err(error.read())),
            _ => {
                return Err(format!(
                    "answered the request {id} without exactly one of `value`, `rows`, `arrow` and `error`"
                ));
            }
        };
        Ok(Self { id, body })
    }
}

fn table(rows: &[Value]) -> Result<FetchAnswer, ConnectorError> {
    if let Some(place) = rows.iter().position(|row| !row.is_object()) {
        let text = format!(
            "the command answered with `rows` whose row {} is not an object",
            place + 1
        );
        return Err(ConnectorError::new(ConnectorErrorKind::Parse, text));
    }
    FetchAnswer::records(rows)
}

impl WrittenError {
    fn read(self) -> ConnectorError {
        let seconds = self.retry_after.map(Duration::try_from_secs_f64);
        let kind = match self.kind.as_deref().unwrap_or("provider") {
            "unauthorized" => ConnectorErrorKind::Unauthorized,
            "payment_required" => ConnectorErrorKind::PaymentRequired,
            "rate_limit" => ConnectorErrorKind::RateLimit {
                retry_after: seconds.and_then(Result::ok),
            },
            "provider" => ConnectorErrorKind::Provider { status: self.status },
            "empty_data" => ConnectorErrorKind::EmptyData,
            "parse" => ConnectorErrorKind::Parse,
            "invalid_parameter" => ConnectorErrorKind::InvalidParameter,
            "timeout" => ConnectorErrorKind::Timeout,
            other => {
                let text = format!(
                    "{} (the command named the kind of this error `{}`, which must be {KINDS})",
                    self.message,
                    short_line(other, 50)
                );
                return ConnectorError::new(ConnectorErrorKind::Provider { status: None }, text);
            }
        };
        ConnectorError::new(kind, self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(line: &str) -> ConnectorError {
        match Reply::read(line.as_bytes()).unwrap().body {
            ReplyBody::Answer(Err(error)) => error,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn errors_of_programs_have_a_kind_that_code_can_catch() {
        let late = r#"{"id":1,"error":{"kind":"rate_limit","message":"slow down","retry_after":1.5}}"#;
        let retry_after = Some(Duration::from_millis(1500));
        assert_eq!(error(late).kind(), ConnectorErrorKind::RateLimit { retry_after });
        for never in ["-1", "1e300", "null"] {
            let line =
                format!(r#"{{"id":1,"error":{{"kind":"rate_limit","message":"x","retry_after":{never}}}}}"#);
            assert_eq!(
                error(&line).kind(),
                ConnectorErrorKind::RateLimit { retry_after: None }
            );
        }
        let status = r#"{"id":1,"error":{"message":"x","status":503}}"#;
        assert_eq!(
            error(status).kind(),
            ConnectorErrorKind::Provider { status: Some(503) }
        );
        let unknown = error(r#"{"id":1,"error":{"kind":"sad","message":"x"}}"#);
        assert!(
            unknown
                .to_string()
                .starts_with("x (the command named the kind of this error `sad`, which must be")
        );
    }

    #[test]
    fn a_line_is_one_answer() {
        for (line, words) in [
            ("hello", "printed a line that is not an answer"),
            ("[1]", "printed a line that is not an answer"),
            (r#"{"value":1}"#, "missing field `id`"),
            (r#"{"id":-1,"value":1}"#, "invalid value"),
            (r#"{"id":1}"#, "without exactly one of"),
            (r#"{"id":1,"value":1,"rows":[]}"#, "without exactly one of"),
            (r#"{"id":1,"error":"x"}"#, "invalid type"),
        ] {
            let error = Reply::read(line.as_bytes()).unwrap_err();
            assert!(error.contains(words), "{line}: {error}");
        }
        let null = Reply::read(br#"{"id":1,"value":null}"#).unwrap();
        assert!(matches!(
            null.body,
            ReplyBody::Answer(Ok(FetchAnswer::Value(Value::Null)))
        ));
        assert!(
            error(r#"{"id":1,"rows":[{},7]}"#)
                .to_string()
                .contains("row 2 is not an object")
        );
    }
}
