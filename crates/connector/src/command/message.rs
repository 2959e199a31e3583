//! Messages of a program: one line each, of JSON.

use std::io::BufReader;
use std::time::Duration;

use cellblock_interpreter::connector::{
    Blob, BlobWriter, ConnectorError, ConnectorErrorKind, FetchAnswer, ListPlace, UnreadAnswer,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
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

/// Number and fields of a line, without their values.
#[derive(Deserialize)]
struct WrittenForm {
    id: u64,
    value: Option<IgnoredAny>,
    rows: Option<IgnoredAny>,
    arrow: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
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
            format!(
                "printed a line that is not an answer ({error}): `{text}`; it must print only answers \
                 to stdout, and all else to stderr"
            )
        })?;
        written.reply()
    }

    /// Keeps a large line in a file until there is memory to read its values. It takes a while.
    pub(super) fn unread(line: Vec<u8>) -> Result<Self, String> {
        let WrittenForm {
            id,
            value,
            rows,
            arrow,
            error,
        } = serde_json::from_slice(&line).map_err(|error| {
            format!(
                "printed a line of {} bytes that is not an answer ({error})",
                line.len()
            )
        })?;
        let bytes = BlobWriter::written(line)
            .map_err(|error| format!("printed a line that cannot be kept: {error}"))?;
        let list = ListPlace::Key("value");
        let (list, read): (_, fn(&Blob) -> _) = match (value, rows, arrow, error) {
            (None, Some(_), None, None) => (None, of_large_rows),
            (Some(_), None, None, None) => (Some(list), of_large),
            _ => (None, of_large),
        };
        let body = ReplyBody::Answer(Ok(FetchAnswer::Unread(UnreadAnswer { bytes, list, read })));
        Ok(Self { id, body })
    }
}

/// Reads the rows of a large line.
fn of_large_rows(line: &Blob) -> Result<FetchAnswer, ConnectorError> {
    FetchAnswer::records_of(line, "rows")
}

/// Reads a large line as a whole.
fn of_large(line: &Blob) -> Result<FetchAnswer, ConnectorError> {
    let wrong = |text: String| ConnectorError::new(ConnectorErrorKind::Parse, format!("the command {text}"));
    let written: WrittenReply = serde_json::from_reader(BufReader::with_capacity(64 << 10, line.reader()))
        .map_err(|error| wrong(format!("printed a large line that is not an answer ({error})")))?;
    match written.reply().map_err(wrong)?.body {
        ReplyBody::Answer(answer) => answer,
        ReplyBody::Arrow(_) => Err(wrong("announced an Arrow IPC stream in a large line".to_owned())),
    }
}

impl WrittenReply {
    /// Returns the one answer that it is.
    fn reply(self) -> Result<Reply, String> {
        let Self {
            id,
            value,
            rows,
            arrow,
            error,
        } = self;
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
        Ok(Reply { id, body })
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
                return ConnectorError::provider(text);
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
    fn a_large_line_is_read_like_a_small_one() {
        for (line, is_list) in [
            (r#"{"id":1,"value":[1,{"a":null}]}"#, true),
            (r#"{"id":1,"rows":[{"a":1},{"b":"x"}]}"#, false),
            (r#"{"id":1,"error":{"kind":"empty_data","message":"x"}}"#, false),
        ] {
            let small = Reply::read(line.as_bytes()).unwrap().body;
            let large = Reply::unread(line.into()).unwrap();
            let (1, ReplyBody::Answer(Ok(FetchAnswer::Unread(large)))) = (large.id, large.body) else {
                panic!("{line} was read");
            };
            assert_eq!(large.list.is_some(), is_list, "{line}");
            let large = ReplyBody::Answer((large.read)(&large.bytes));
            assert_eq!(format!("{large:?}"), format!("{small:?}"), "{line}");
        }
        for (line, reason) in [
            (r#"{"id":1,"value":[],"rows":[]}"#, "the command"),
            (r#"{"id":1,"rows":[1]}"#, "row 1 is not an object"),
        ] {
            let ReplyBody::Answer(Ok(FetchAnswer::Unread(large))) = Reply::unread(line.into()).unwrap().body
            else {
                panic!("{line} was read");
            };
            let error = (large.read)(&large.bytes).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
        for line in [r#"{"value":[]}"#, r#"{"id":1,"value":["#] {
            assert!(Reply::unread(line.into()).is_err(), "{line}");
        }
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
