//! Records of a JSON answer as the columns of a table.
//!
//! A column has the type of its values if they have one in common. Otherwise it has each value as
//! JSON text, so that nothing is changed: the type `json` says so.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Float64Builder, Int64Builder, NullBuilder, StringBuilder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use cellblock_protocol::Blob;
use serde_json::{Number, Value};

use super::BlobWriter;
use super::row_stream::each_row;
use crate::output::{DecodingLimits, OutputError};

/// Rows of a batch.
const BATCH_ROWS: usize = 65_536;
/// Rows of a batch that is read from a file.
const STREAMED_ROWS: usize = 8192;
/// Largest integer up to which floating-point numbers have every integer.
const EXACT: u64 = 1 << 53;

/// Type that all values of a column have so far.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ColumnKind {
    Null,
    Bool,
    /// Whether a value exceeds what floating-point numbers have exactly.
    Integer {
        wide: bool,
    },
    /// Integers of which some are larger than an `i64`, and none negative.
    Unsigned,
    Float,
    Text,
    Json,
}

/// The columns of a list of records.
#[derive(Debug, Default)]
pub(super) struct RecordColumns {
    kinds: Vec<(String, ColumnKind)>,
    places: HashMap<String, usize>,
    rows: u64,
}

/// Returns the list of records in an answer: the answer itself, or its only list, beside which
/// there are only plain values.
pub(super) fn records(answer: &Value) -> Option<&[Value]> {
    let list = match answer {
        Value::Array(list) => list,
        Value::Object(fields) => {
            let mut nested = fields.values().filter(|it| it.is_array() || it.is_object());
            match (nested.next(), nested.next()) {
                (Some(Value::Array(list)), None) => list,
                _ => return None,
            }
        }
        _ => return None,
    };
    list.iter().all(Value::is_object).then_some(list)
}

impl RecordColumns {
    /// Looks at all values. The error says why they are not stored as a table.
    pub(super) fn of(rows: &[Value], limits: &DecodingLimits) -> Result<Self, String> {
        let mut columns = Self::default();
        for row in rows {
            columns.add(row, limits)?;
        }
        columns.check(limits)?;
        Ok(columns)
    }

    /// Looks at the values of a further row.
    pub(super) fn add(&mut self, row: &Value, limits: &DecodingLimits) -> Result<(), String> {
        self.rows += 1;
        for (name, value) in row.as_object().into_iter().flatten() {
            let place = match self.places.get(name) {
                Some(place) => *place,
                None if self.kinds.len() == limits.columns => {
                    return Err(format!("it has more than {} columns", limits.columns));
                }
                None => {
                    let place = self.kinds.len();
                    self.places.insert(name.clone(), place);
                    self.kinds.push((name.clone(), ColumnKind::Null));
                    place
                }
            };
            let kind = &mut self.kinds[place].1;
            *kind = kind.and(value);
        }
        Ok(())
    }

    /// Checks the number of cells.
    pub(super) fn check(&self, limits: &DecodingLimits) -> Result<(), String> {
        let cells = self.rows.saturating_mul(self.kinds.len() as u64);
        let most = limits.free_cells;
        if cells > most {
            return Err(format!("as a table it has {cells} cells, the limit is {most}"));
        }
        Ok(())
    }

    /// Reads the records in the list of a JSON document twice: their types, and their values into
    /// an Arrow IPC stream. Only some are in memory at a time.
    pub(super) fn stream_of(
        document: &Blob,
        key: Option<&str>,
        limits: &DecodingLimits,
    ) -> Result<(Self, Blob), String> {
        let mut columns = Self::default();
        each_row(document, key, |row| {
            if !row.is_object() {
                return Err(format!("row {} is not an object", columns.rows + 1));
            }
            columns.add(&row, limits)
        })?;
        columns.check(limits)?;
        let schema = columns.schema();
        let failed = |error: &dyn std::error::Error| error.to_string();
        let stream = StreamWriter::try_new(BlobWriter::default(), &schema);
        let mut stream = stream.map_err(|error| failed(&error))?;
        let mut rows = Vec::new();
        let mut write = |rows: &mut Vec<Value>| {
            let batch = columns.batch(&schema, rows).map_err(|error| failed(&error))?;
            rows.clear();
            stream.write(&batch).map_err(|error| failed(&error))
        };
        each_row(document, key, |row| {
            rows.push(row);
            if rows.len() == STREAMED_ROWS {
                write(&mut rows)
            } else {
                Ok(())
            }
        })?;
        if !rows.is_empty() {
            write(&mut rows)?;
        }
        let written = stream.into_inner().map_err(|error| failed(&error))?;
        let written = written.finish().map_err(|error| failed(&error))?;
        Ok((columns, written))
    }

    pub(super) fn schema(&self) -> SchemaRef {
        let fields = self.kinds.iter().map(|(name, kind)| {
            let kind = match kind {
                ColumnKind::Null => DataType::Null,
                ColumnKind::Bool => DataType::Boolean,
                ColumnKind::Integer { .. } => DataType::Int64,
                ColumnKind::Unsigned => DataType::UInt64,
                ColumnKind::Float => DataType::Float64,
                ColumnKind::Text | ColumnKind::Json => DataType::Utf8,
            };
            Field::new(name, kind, true)
        });
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    /// Returns the columns' types for descriptions.
    pub(super) fn types(&self) -> impl Iterator<Item = String> {
        self.kinds.iter().map(|(_, kind)| {
            let name = match kind {
                ColumnKind::Null => "null",
                ColumnKind::Bool => "bool",
                ColumnKind::Integer { .. } => "int64",
                ColumnKind::Unsigned => "uint64",
                ColumnKind::Float => "float64",
                ColumnKind::Text => "string",
                ColumnKind::Json => "json",
            };
            name.to_owned()
        })
    }

    /// Returns the rows in batches of this schema.
    pub(super) fn batches(
        &self,
        schema: &SchemaRef,
        rows: &[Value],
    ) -> impl Iterator<Item = Result<RecordBatch, OutputError>> {
        rows.chunks(BATCH_ROWS).map(move |rows| self.batch(schema, rows))
    }

    /// Returns some rows as a batch of this schema.
    pub(super) fn batch(&self, schema: &SchemaRef, rows: &[Value]) -> Result<RecordBatch, OutputError> {
        let columns = self.kinds.iter().map(|(name, kind)| {
            let values = rows
                .iter()
                .map(|row| row.get(name).filter(|value| !value.is_null()));
            kind.array(values, rows.len())
        });
        Ok(RecordBatch::try_new(Arc::clone(schema), columns.collect())?)
    }
}

impl ColumnKind {
    /// Returns the type that also has a further value.
    fn and(self, value: &Value) -> Self {
        let other = match value {
            Value::Null => return self,
            Value::Bool(_) => Self::Bool,
            Value::Number(number) => Self::of_number(number),
            Value::String(_) => Self::Text,
            Value::Array(_) | Value::Object(_) => Self::Json,
        };
        match (self, other) {
            (Self::Null, other) => other,
            (one, other) if one == other => one,
            (Self::Integer { .. }, Self::Integer { .. }) => Self::Integer { wide: true },
            (Self::Integer { wide: false }, Self::Float) | (Self::Float, Self::Integer { wide: false }) => {
                Self::Float
            }
            _ => Self::Json,
        }
    }

    fn of_number(number: &Number) -> Self {
        match (number.as_i64(), number.as_u64()) {
            (Some(integer), _) => Self::Integer {
                wide: integer.unsigned_abs() > EXACT,
            },
            (None, Some(_)) => Self::Unsigned,
            (None, None) => Self::Float,
        }
    }

    fn array<'a>(self, values: impl Iterator<Item = Option<&'a Value>>, rows: usize) -> ArrayRef {
        match self {
            Self::Null => {
                let mut builder = NullBuilder::new();
                builder.append_nulls(rows);
                Arc::new(builder.finish())
            }
            Self::Bool => {
                let mut builder = BooleanBuilder::with_capacity(rows);
                values.for_each(|it| builder.append_option(it.and_then(Value::as_bool)));
                Arc::new(builder.finish())
            }
            Self::Integer { .. } => {
                let mut builder = Int64Builder::with_capacity(rows);
                values.for_each(|it| builder.append_option(it.and_then(Value::as_i64)));
                Arc::new(builder.finish())
            }
            Self::Unsigned => {
                let mut builder = UInt64Builder::with_capacity(rows);
                values.for_each(|it| builder.append_option(it.and_then(Value::as_u64)));
                Arc::new(builder.finish())
            }
            Self::Float => {
                let mut builder = Float64Builder::with_capacity(rows);
                values.for_each(|it| builder.append_option(it.and_then(Value::as_f64)));
                Arc::new(builder.finish())
            }
            Self::Text => {
                let mut builder = StringBuilder::new();
                values.for_each(|it| builder.append_option(it.and_then(Value::as_str)));
                Arc::new(builder.finish())
            }
            Self::Json => {
                let mut builder = StringBuilder::new();
                values.for_each(|it| builder.append_option(it.map(Value::to_string)));
                Arc::new(builder.finish())
            }
        }
    }
}
