//! Arguments of a statement, which the server reads as the type that it expects.

use std::error::Error;

use serde_json::Value;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{Format, IsNull, Kind, ToSql, Type, to_sql_checked};

/// A value to bind, sent as text.
#[derive(Debug)]
pub(super) struct Argument<'a>(pub(super) &'a Value);

impl ToSql for Argument<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let text = match (self.0, kind.kind()) {
            (Value::Null, _) => return Ok(IsNull::Yes),
            (Value::Array(_), Kind::Array(_)) => array(self.0),
            (Value::String(text), _) if !matches!(*kind, Type::JSON | Type::JSONB) => text.clone(),
            (value, _) => value.to_string(),
        };
        out.extend_from_slice(text.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}

/// Returns the text of an array.
fn array(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(array).collect();
            format!("{{{}}}", items.join(","))
        }
        Value::Null => "NULL".to_owned(),
        Value::String(text) => quoted(text),
        Value::Object(_) => quoted(&value.to_string()),
        other => other.to_string(),
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
