//! Values as E2B's results: each form has the name that E2B gives to its MIME type.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cellblock_interpreter::artifact::Store;
use cellblock_interpreter::output::{ArtifactRef, Output, Primitive, Rich, Scalar};
use cellblock_interpreter::render;
use serde::Serialize;
use serde_json::{Map, Value};

use super::line::Line;

/// The name that the kernel gives to the value of a cell's last expression; see
/// `cellblock_kernel/e2b/session.py`.
const MAIN: &str = "e2b:main";
/// Tells that a value has no text; see `cellblock_kernel/e2b/values.py`.
const NO_TEXT: &str = "e2b/no-text";
/// Size of a description of a value that has no form of its own here.
const TOKENS: usize = 2000;

/// A value.
#[derive(Debug, Default, Serialize)]
pub(super) struct ResultLine {
    #[serde(flatten)]
    forms: Map<String, Value>,
    is_main_result: bool,
    extra: Map<String, Value>,
}

/// Turns an output into a line. If `is_main`, it is the value of the cell's last expression, even
/// if the kernel does not say so.
pub(super) async fn line(store: &Store, output: Output, is_main: bool) -> Line {
    let is_main_result = is_main || output.name() == Some(MAIN);
    let mut line = ResultLine {
        is_main_result,
        ..ResultLine::default()
    };
    match output {
        Output::Exception(exception) => {
            return Line::Error {
                name: exception.exception,
                value: exception.message,
                traceback: exception.traceback,
            };
        }
        Output::Primitive(it) => line.set("text", text(it)),
        Output::Rich(it) => line.rich(store, it).await,
        // The kernel shows nothing else in these sessions, unless code has undone its converter.
        other => {
            let detail = render::Detail::default();
            line.set("text", render::text(&other, detail, TOKENS));
            for artifact in other.artifacts() {
                line.form(store, &artifact.media_type, artifact).await;
            }
            line.extra.clear();
        }
    }
    Line::Result(Box::new(line))
}

impl ResultLine {
    fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.forms.insert(name.to_owned(), value.into());
    }

    async fn rich(&mut self, store: &Store, it: Rich) {
        let has_text = it.bundle.iter().all(|form| form.mime != NO_TEXT);
        if has_text && !it.text.is_empty() {
            self.set("text", it.text);
        }
        for form in it.bundle.iter().filter(|form| form.mime != NO_TEXT) {
            self.form(store, &form.mime, &form.artifact).await;
        }
    }

    async fn form(&mut self, store: &Store, mime: &str, artifact: &ArtifactRef) {
        let bytes = match store.get(artifact.sha256).await {
            Ok(bytes) => bytes,
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    mime,
                    "read a form of a result"
                );
                return;
            }
        };
        let as_text = || String::from_utf8_lossy(&bytes).into_owned();
        let as_base64 = || STANDARD.encode(&bytes);
        let as_json = || serde_json::from_slice::<Value>(&bytes).ok();
        let (name, value) = match mime {
            "text/html" => ("html", as_text().into()),
            "text/markdown" => ("markdown", as_text().into()),
            "text/latex" => ("latex", as_text().into()),
            "image/svg+xml" => ("svg", as_text().into()),
            "image/png" => ("png", as_base64().into()),
            "image/jpeg" => ("jpeg", as_base64().into()),
            "application/pdf" => ("pdf", as_base64().into()),
            "application/javascript" => ("javascript", as_text().into()),
            "application/json" => match as_json() {
                Some(value) => ("json", value),
                None => return,
            },
            "e2b/data" => match as_json() {
                Some(value) => ("data", value),
                None => return,
            },
            "e2b/chart" => match as_json() {
                Some(value) => ("chart", value),
                None => return,
            },
            other => {
                let is_text = std::str::from_utf8(&bytes).is_ok();
                let value = as_json().unwrap_or_else(|| if is_text { as_text() } else { as_base64() }.into());
                self.extra.insert(other.to_owned(), value);
                return;
            }
        };
        self.forms.insert(name.to_owned(), value);
    }
}

/// Returns a scalar as Python writes it.
fn text(it: Primitive) -> String {
    match it.value {
        Scalar::Null => "None".to_owned(),
        Scalar::Bool(true) => "True".to_owned(),
        Scalar::Bool(false) => "False".to_owned(),
        Scalar::Integer(value) => value.to_string(),
        Scalar::Float(value) => float(value),
        Scalar::Text(text) => text,
    }
}

/// Returns the shortest text of a float, with Python's exponents.
fn float(value: f64) -> String {
    let plain = format!("{value:?}");
    let is_small = value != 0.0 && value.abs() < 1e-4;
    let written = if is_small && !plain.contains('e') {
        format!("{value:e}")
    } else {
        plain
    };
    let Some((digits, exponent)) = written.split_once('e') else {
        return written;
    };
    let (sign, size) = match exponent.strip_prefix('-') {
        Some(size) => ('-', size),
        None => ('+', exponent),
    };
    let digits = digits.strip_suffix(".0").unwrap_or(digits);
    format!("{digits}e{sign}{size:0>2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_python_writes_them() {
        for (value, expected) in [
            (0.1, "0.1"),
            (2.0, "2.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (1e-5, "1e-05"),
            (0.0001, "0.0001"),
            (-2.5e-7, "-2.5e-07"),
            (0.0, "0.0"),
        ] {
            assert_eq!(float(value), expected);
        }
    }
}
