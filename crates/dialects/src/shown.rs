//! Outputs as notebooks have them: bundles of representations by their media types.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cellblock_interpreter::Output;
use cellblock_interpreter::artifact::Store;
use cellblock_interpreter::chart::{CheckedChart, VEGA_LITE};
use cellblock_interpreter::output::{ArtifactRef, Dataframe, Exception, Primitive, Scalar};
use cellblock_interpreter::render::{Detail, text};
use serde_json::{Map, Value, json};

/// Tokens of an output's plain text.
const TOKENS: usize = 8000;
/// Maximum size of a representation that is sent; a larger one is left out.
const MAX_BYTES: u64 = 16 << 20;

/// An output of a cell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ShownOutput {
    /// A value in its representations.
    Value(Map<String, Value>),
    /// An exception.
    Error(NotebookException),
}

/// An exception as notebooks have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotebookException {
    pub(crate) name: String,
    pub(crate) message: String,
    pub(crate) traceback: Vec<String>,
}

impl NotebookException {
    pub(crate) fn new(name: &str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            name: name.to_owned(),
            traceback: vec![format!("{name}: {message}")],
            message,
        }
    }

    /// Its fields in messages and notebooks.
    pub(crate) fn fields(&self) -> Value {
        json!({"ename": self.name, "evalue": self.message, "traceback": self.traceback})
    }
}

impl From<&Exception> for NotebookException {
    fn from(raised: &Exception) -> Self {
        Self {
            name: raised.exception.clone(),
            message: raised.message.clone(),
            traceback: raised.traceback.lines().map(str::to_owned).collect(),
        }
    }
}

/// Reads an output's representations. One that cannot be read is left out; its plain text says what it is.
pub(crate) async fn shown(store: &Store, output: &Output) -> ShownOutput {
    if let Output::Exception(raised) = output {
        return ShownOutput::Error(raised.into());
    }
    let mut bundle = Map::new();
    let plain = match output {
        Output::Primitive(it) => literal(it),
        Output::Rich(it) => it.text.clone(),
        other => text(other, Detail::Full, TOKENS),
    };
    bundle.insert("text/plain".to_owned(), plain.into());
    match output {
        Output::Dataframe(it) => {
            bundle.insert("text/html".to_owned(), table(it).into());
        }
        Output::Figure(it) => {
            for artifact in it.image.iter().chain(&it.spec) {
                add(&mut bundle, store, &artifact.media_type, artifact).await;
            }
        }
        Output::Image(it) => {
            if let Some(artifact) = &it.image {
                add(&mut bundle, store, &artifact.media_type, artifact).await;
            }
        }
        Output::Chart(it) => {
            if let Some(document) = &it.document
                && let Some(bytes) = read(store, document).await
                && let Ok(chart) = CheckedChart::of_document(&bytes)
            {
                bundle.insert(vega(), chart.vega_lite());
            }
            if let Some(artifact) = &it.image {
                add(&mut bundle, store, &artifact.media_type, artifact).await;
            }
        }
        Output::Rich(it) => {
            for form in &it.bundle {
                add(&mut bundle, store, &form.mime, &form.artifact).await;
            }
        }
        Output::Result(it) => {
            bundle.insert("application/json".to_owned(), it.value.clone());
        }
        Output::Primitive(_) | Output::Exception(_) => {}
    }
    ShownOutput::Value(bundle)
}

/// The media type by which JupyterLab knows what to draw.
fn vega() -> String {
    "application/vnd.vegalite.v5+json".to_owned()
}

async fn add(bundle: &mut Map<String, Value>, store: &Store, media_type: &str, artifact: &ArtifactRef) {
    let Some(bytes) = read(store, artifact).await else {
        return;
    };
    if media_type == VEGA_LITE {
        if let Ok(spec) = serde_json::from_slice(&bytes) {
            bundle.insert(vega(), spec);
        }
        return;
    }
    let is_json = media_type == "application/json" || media_type.ends_with("+json");
    let value = if is_json {
        serde_json::from_slice(&bytes).ok()
    } else if media_type.starts_with("text/") || media_type == "image/svg+xml" {
        Some(Value::from(String::from_utf8_lossy(&bytes).into_owned()))
    } else {
        Some(Value::from(STANDARD.encode(&bytes)))
    };
    if let Some(value) = value {
        bundle.insert(media_type.to_owned(), value);
    }
}

async fn read(store: &Store, artifact: &ArtifactRef) -> Option<Vec<u8>> {
    if artifact.bytes > MAX_BYTES {
        return None;
    }
    match store.get(artifact.sha256).await {
        Ok(bytes) => Some(bytes.to_vec()),
        Err(error) => {
            tracing::warn!(%error, "a representation of an output could not be read");
            None
        }
    }
}

/// Returns a value as Python shows it.
fn literal(value: &Primitive) -> String {
    match &value.value {
        Scalar::Null => "None".to_owned(),
        Scalar::Bool(true) => "True".to_owned(),
        Scalar::Bool(false) => "False".to_owned(),
        Scalar::Integer(number) => number.to_string(),
        Scalar::Float(number) => format!("{number:?}"),
        Scalar::Text(text) if value.python_type == "str" => quoted(text),
        Scalar::Text(text) => text.clone(),
    }
}

/// Returns a text in quotes, as Python writes it.
fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    let mut quoted = String::from(quote);
    for character in text.chars() {
        match character {
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            it if it == quote => quoted.extend(['\\', it]),
            it if it < ' ' || it == '\x7f' => {
                let _ = write!(quoted, "\\x{:02x}", u32::from(it));
            }
            it => quoted.push(it),
        }
    }
    quoted.push(quote);
    quoted
}

/// Returns a table's first and last rows as HTML.
fn table(table: &Dataframe) -> String {
    let mut html = String::from("<table border=\"1\" class=\"dataframe\">\n<thead><tr>");
    for column in &table.columns {
        let _ = write!(html, "<th>{}</th>", escaped(&column.name));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    let row = |html: &mut String, cells: &[Value]| {
        html.push_str("<tr>");
        for cell in cells {
            let text = match cell {
                Value::String(text) => escaped(text),
                Value::Null => String::new(),
                other => escaped(&other.to_string()),
            };
            let _ = write!(html, "<td>{text}</td>");
        }
        html.push_str("</tr>\n");
    };
    table.head.iter().for_each(|cells| row(&mut html, cells));
    if (table.head.len() + table.tail.len()) as u64 != table.rows {
        let _ = writeln!(html, "<tr><td colspan=\"{}\">…</td></tr>", table.columns.len());
    }
    table.tail.iter().for_each(|cells| row(&mut html, cells));
    html.push_str("</tbody>\n</table>\n");
    let _ = write!(
        html,
        "<p>{} rows × {} columns</p>",
        table.rows,
        table.columns.len()
    );
    html
}

fn escaped(text: &str) -> String {
    let escape = |character| match character {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        other => String::from(other),
    };
    text.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_quoted_as_python_does() {
        assert_eq!(quoted("a"), "'a'");
        assert_eq!(quoted("it's"), "\"it's\"");
        assert_eq!(quoted("'\""), "'\\'\"'");
        assert_eq!(quoted("a\n\\\x01é"), "'a\\n\\\\\\x01é'");
    }

    #[test]
    fn html_of_a_table_does_not_contain_markup_of_its_values() {
        assert_eq!(escaped("<b a=\"1\">&"), "&lt;b a=&quot;1&quot;&gt;&amp;");
    }
}
