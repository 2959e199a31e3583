//! The rows of a chart: flat objects of texts, numbers and nulls, limited while they are read.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use cellblock_protocol::json_size;
use cellblock_protocol::text::acts;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use super::error::{ChartError, ChartProblem, Problems, code, quoted, repeated};

/// Maximum number of rows: more than a screen has pixels side by side.
pub const MAX_ROWS: usize = 5000;
/// Maximum number of drawn values: rows times series.
pub const MAX_POINTS: usize = 40_000;
/// Maximum size of the rows as JSON, in bytes.
pub const MAX_BYTES: usize = 4 << 20;
/// Maximum number of different keys of all rows.
pub const MAX_KEYS: usize = 64;
/// Maximum length of a key in characters.
pub(super) const MAX_KEY: usize = 100;
/// Maximum length of a text in characters.
const MAX_TEXT: usize = 1000;

/// A row: its value for each key.
pub type Row = BTreeMap<String, RowValue>;

/// One value of a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum RowValue {
    /// No value.
    Null,
    /// A finite number.
    Number(Number),
    /// A text.
    Text(String),
}

impl RowValue {
    /// Returns the number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => number.as_f64().filter(|it| it.is_finite()),
            Self::Null | Self::Text(_) => None,
        }
    }

    /// Returns milliseconds since 1970 in UTC, if the value can be read as a time.
    pub fn time(&self) -> Option<i64> {
        match self {
            Self::Number(_) => self.number().and_then(super::time::of_number),
            Self::Text(text) => super::time::of_text(text),
            Self::Null => None,
        }
    }

    /// Returns the value as a label of an axis; none for null.
    pub fn label(&self) -> Option<String> {
        match self {
            Self::Number(number) => Some(number.to_string()),
            Self::Text(text) => Some(text.clone()),
            Self::Null => None,
        }
    }
}

/// The rows of a chart.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Rows(Vec<Row>);

impl Rows {
    /// Reads a JSON array of flat objects, of at most [`MAX_BYTES`], [`MAX_ROWS`] rows and [`MAX_KEYS`] keys.
    pub fn parse(bytes: &[u8]) -> Result<Self, ChartError> {
        if bytes.len() > MAX_BYTES {
            return Err(ChartError::of(too_many_bytes(bytes.len())));
        }
        let mut json = serde_json::Deserializer::from_slice(bytes);
        let read = RowReader::deserialize(&mut json).and_then(|read| json.end().map(|()| read));
        match read {
            Ok(read) => read.finish("data"),
            Err(error) => Err(ChartError::of(ChartProblem::new(
                code::DATA_MALFORMED,
                "data",
                format!(
                    "not a JSON array of row objects (line {}, column {}); write NaN and infinity as null",
                    error.line(),
                    error.column()
                ),
            ))),
        }
    }

    /// Reads rows from JSON that was already parsed; `field` is their location in it.
    pub(super) fn from_value(value: &Value, field: &str) -> Result<Self, ChartError> {
        let read = RowReader::deserialize(value).map_err(|_| {
            let message = "not an array of row objects";
            ChartError::of(ChartProblem::new(code::DATA_MALFORMED, field, message))
        })?;
        let rows = read.finish(field)?;
        match json_size(&rows).unwrap_or(usize::MAX) {
            0..=MAX_BYTES => Ok(rows),
            bytes => Err(ChartError::of(too_many_bytes(bytes))),
        }
    }

    /// Returns the rows in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Row> {
        self.0.iter()
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Describes each key: the kind of its values, and the number of missing ones.
    pub fn summary(&self) -> Columns {
        columns::of(self)
    }
}

impl<'a> IntoIterator for &'a Rows {
    type Item = &'a Row;
    type IntoIter = std::slice::Iter<'a, Row>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

fn too_many_bytes(actual: usize) -> ChartProblem {
    let message = format!(
        "{actual} bytes of rows as JSON are over the limit of {MAX_BYTES}; leave out keys that the chart \
         does not use, or aggregate"
    );
    ChartProblem::new(code::TOO_LARGE, "data", message)
}

/// Rows while they are read, with their problems.
#[derive(Default)]
struct RowReader {
    rows: Vec<Row>,
    /// Number of rows, including those that are not kept.
    count: usize,
    keys: BTreeSet<String>,
    wrong: Vec<(usize, Option<String>, ValueProblem)>,
}

/// Problem of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueProblem {
    Row,
    Keys,
    Key,
    Nested,
    Bool,
    Text,
}

/// A value in the form in which it is found.
enum CellValue {
    Cell(RowValue),
    Wrong(ValueProblem),
}

impl RowReader {
    /// Notes the first row in which a key has a problem.
    fn note(&mut self, key: Option<&str>, wrong: ValueProblem) {
        let key = key.map(repeated);
        let alike = matches!(wrong, ValueProblem::Key | ValueProblem::Keys);
        let mut known = self.wrong.iter().filter(|(_, _, kind)| *kind == wrong);
        if self.wrong.len() <= MAX_KEYS && !known.any(|(_, other, _)| alike || *other == key) {
            self.wrong.push((self.count, key, wrong));
        }
    }

    fn take(&mut self, row: &mut Row, key: String, found: CellValue) {
        if key.chars().count() > MAX_KEY || key.is_empty() || key.chars().any(acts) {
            return self.note(Some(&key), ValueProblem::Key);
        }
        if !self.keys.contains(&key) {
            if self.keys.len() == MAX_KEYS {
                return self.note(None, ValueProblem::Keys);
            }
            self.keys.insert(key.clone());
        }
        match found {
            CellValue::Cell(cell) => {
                row.insert(key, cell);
            }
            CellValue::Wrong(wrong) => self.note(Some(&key), wrong),
        }
    }

    fn finish(self, field: &str) -> Result<Rows, ChartError> {
        let mut problems = Problems::default();
        if self.count > MAX_ROWS {
            let message = format!(
                "{} rows are over the limit of {MAX_ROWS}, and none is left out silently; aggregate or \
                 sample to at most {MAX_ROWS} rows",
                self.count
            );
            problems.add(code::ROW_COUNT_TRUNCATION, field, message);
        }
        for (row, key, wrong) in self.wrong {
            problems.push(problem(field, row, key.as_deref(), wrong));
        }
        problems.into_error().map_or(Ok(Rows(self.rows)), Err)
    }
}

fn problem(field: &str, row: usize, key: Option<&str>, wrong: ValueProblem) -> ChartProblem {
    let at = match key {
        Some(key) if wrong != ValueProblem::Key => format!("{field}[{row}].{key}"),
        _ => format!("{field}[{row}]"),
    };
    let (code, message) = match wrong {
        ValueProblem::Row => (
            code::DATA_MALFORMED,
            "a row has to be an object of key and value".to_owned(),
        ),
        ValueProblem::Nested => (
            code::DATA_MALFORMED,
            "a value has to be a string, a number or null; flatten what is nested into keys of their own, \
             or leave the key out"
                .to_owned(),
        ),
        ValueProblem::Bool => (
            code::DATA_MALFORMED,
            "a value has to be a string, a number or null; write true and false as 1 and 0 or as strings"
                .to_owned(),
        ),
        ValueProblem::Text => (
            code::TOO_LARGE,
            format!("a text of more than {MAX_TEXT} characters; cut it, or leave the key out"),
        ),
        ValueProblem::Key => (
            code::DATA_MALFORMED,
            format!(
                "the key {} is empty, longer than {MAX_KEY} characters or has control characters; rename it",
                quoted(key.unwrap_or_default())
            ),
        ),
        ValueProblem::Keys => (
            code::TOO_LARGE,
            format!(
                "the rows have more than {MAX_KEYS} different keys; leave out those that the chart \
                 does not use"
            ),
        ),
    };
    ChartProblem::new(code, at, message)
}

impl<'de> Deserialize<'de> for RowReader {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(List)
    }
}

struct List;

impl<'de> Visitor<'de> for List {
    type Value = RowReader;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of row objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<RowReader, A::Error> {
        let mut reading = RowReader::default();
        loop {
            // Rows beyond the limit are only counted, so that hostile rows take no memory.
            let next = if reading.count >= MAX_ROWS {
                list.next_element()?.map(|IgnoredAny| ())
            } else {
                let row = list.next_element_seed(RowVisitor(&mut reading))?;
                row.map(|row| match row {
                    Some(row) => reading.rows.push(row),
                    None => reading.note(None, ValueProblem::Row),
                })
            };
            if next.is_none() {
                break;
            }
            reading.count += 1;
        }
        Ok(reading)
    }
}

mod columns;
mod one;

use one::RowVisitor;

pub use columns::{ColumnKind, ColumnSummary, Columns};

#[cfg(test)]
mod tests;
