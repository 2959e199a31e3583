//! Rows of a JSON answer, as a list or as a table with declared types.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, BooleanBuilder, Date32Builder, Float64Builder, Int64Builder, StringBuilder,
    TimestampMicrosecondBuilder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use cellblock_interpreter::connector::{BlobWriter, FetchAnswer, LargeAnswer};
use chrono::{DateTime, NaiveDate, NaiveDateTime};
use serde_json::Value;
use serde_json_path::JsonPath;

use crate::options::{CellType, ResultOptions};
use crate::recipe::OptionMistake;

/// Limits of a batch in rows and in bytes of text.
const BATCH_ROWS: usize = 65_536;
const BATCH_BYTES: usize = 32 << 20;
const UTC: &str = "UTC";

/// Plan for finding rows in an answer.
#[derive(Debug)]
pub(crate) struct RowPlan {
    rows: JsonPath,
    columns: Vec<ColumnPlan>,
    missing: HashSet<String>,
    schema: SchemaRef,
}

#[derive(Debug)]
struct ColumnPlan {
    name: String,
    kind: CellType,
    path: Option<JsonPath>,
}

/// Reads a JSONPath; the error continues a sentence that starts with the key.
pub(crate) fn json_path(text: &str) -> Result<JsonPath, String> {
    JsonPath::parse(text).map_err(|error| format!("`{text}` is not a JSONPath such as `$.data[*]`: {error}"))
}

impl RowPlan {
    pub(crate) fn new(options: &ResultOptions) -> Result<Self, Vec<OptionMistake>> {
        let mut mistakes = Vec::new();
        let rows = json_path(&options.rows)
            .map_err(|error| mistakes.push(OptionMistake::new(&["rows"], error)))
            .ok();
        for name in options.paths.keys() {
            if !options.columns.contains_key(name) {
                let text = "has no effect, because `columns` has no such column; remove it";
                mistakes.push(OptionMistake::new(&["paths", name], text));
            }
        }
        let mut columns = Vec::new();
        for (name, kind) in &options.columns {
            let path = options.paths.get(name).and_then(|path| {
                json_path(path)
                    .map_err(|error| mistakes.push(OptionMistake::new(&["paths", name], error)))
                    .ok()
            });
            columns.push(ColumnPlan {
                name: name.clone(),
                kind: *kind,
                path,
            });
        }
        let fields = columns.iter().map(|column| {
            let kind = match column.kind {
                CellType::String | CellType::Json => DataType::Utf8,
                CellType::Int64 => DataType::Int64,
                CellType::Float64 => DataType::Float64,
                CellType::Bool => DataType::Boolean,
                CellType::Date => DataType::Date32,
                CellType::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
            };
            Field::new(&column.name, kind, true)
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        match rows {
            Some(rows) if mistakes.is_empty() => Ok(Self {
                rows,
                columns,
                missing: options.missing.iter().cloned().collect(),
                schema,
            }),
            _ => Err(mistakes),
        }
    }
}

/// The rows of the pages so far.
pub(crate) enum RowsRead {
    List(Vec<Value>),
    Table(Box<Table>),
}

impl RowsRead {
    pub(crate) fn new(plan: &RowPlan) -> Result<Self, ArrowError> {
        if plan.columns.is_empty() {
            return Ok(Self::List(Vec::new()));
        }
        let builders = plan.columns.iter().map(|column| Cells::new(column.kind));
        Ok(Self::Table(Box::new(Table {
            builders: builders.collect(),
            bytes: 0,
            batch: 0,
            rows: 0,
            writer: StreamWriter::try_new(BlobWriter::default(), &plan.schema)?,
        })))
    }

    /// Adds the rows of a page; the error says which value is not of its column's type.
    pub(crate) fn add(&mut self, plan: &RowPlan, page: &Value) -> Result<(), String> {
        for row in plan.rows.query(page) {
            match self {
                Self::List(rows) => rows.push(row.clone()),
                Self::Table(table) => table.add(plan, row)?,
            }
        }
        Ok(())
    }

    pub(crate) fn finish(self, plan: &RowPlan, place: Option<LargeAnswer>) -> Result<FetchAnswer, String> {
        match self {
            Self::List(rows) => Ok(FetchAnswer::of_value(rows.into(), place)),
            Self::Table(mut table) => {
                let written = table.flush(plan).and_then(|()| table.writer.into_inner());
                let stream = written.map_err(|error| error.to_string())?;
                let stream = stream
                    .finish()
                    .map_err(|error| format!("the rows cannot be kept: {error}"))?;
                Ok(FetchAnswer::Arrow(stream))
            }
        }
    }
}

/// A table that grows row by row, as an Arrow IPC stream.
pub(crate) struct Table {
    builders: Vec<Cells>,
    /// Bytes of text in the batch.
    bytes: usize,
    /// Rows of the batch.
    batch: usize,
    rows: usize,
    writer: StreamWriter<BlobWriter>,
}

impl Table {
    fn add(&mut self, plan: &RowPlan, row: &Value) -> Result<(), String> {
        self.rows += 1;
        for (column, cells) in plan.columns.iter().zip(&mut self.builders) {
            let value = match &column.path {
                Some(path) => path.query(row).first(),
                None => row.get(&column.name),
            };
            let value = value.filter(|value| match value {
                Value::Null => false,
                Value::String(text) => !plan.missing.contains(text),
                _ => true,
            });
            self.bytes += value.and_then(Value::as_str).map_or(0, str::len);
            if !cells.push(value) {
                let value = value.map(Value::to_string).unwrap_or_default();
                return Err(format!(
                    "row {} has a value in `{}` that is not of the type `{}`: {value}",
                    self.rows,
                    column.name,
                    column.kind.name()
                ));
            }
        }
        self.batch += 1;
        if self.batch == BATCH_ROWS || self.bytes > BATCH_BYTES {
            self.flush(plan).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn flush(&mut self, plan: &RowPlan) -> Result<(), ArrowError> {
        if self.batch > 0 {
            let columns = self.builders.iter_mut().map(Cells::finish).collect();
            let batch = RecordBatch::try_new(Arc::clone(&plan.schema), columns)?;
            self.writer.write(&batch)?;
        }
        (self.batch, self.bytes) = (0, 0);
        Ok(())
    }
}

impl CellType {
    const fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Int64 => "int64",
            Self::Float64 => "float64",
            Self::Bool => "bool",
            Self::Date => "date",
            Self::Timestamp => "timestamp",
            Self::Json => "json",
        }
    }
}

/// The cells of a column in a batch.
#[derive(Debug)]
enum Cells {
    String(StringBuilder),
    Int64(Int64Builder),
    Float64(Float64Builder),
    Bool(BooleanBuilder),
    Date(Date32Builder),
    Timestamp(TimestampMicrosecondBuilder),
    Json(StringBuilder),
}

impl Cells {
    fn new(kind: CellType) -> Self {
        match kind {
            CellType::String => Self::String(StringBuilder::new()),
            CellType::Int64 => Self::Int64(Int64Builder::new()),
            CellType::Float64 => Self::Float64(Float64Builder::new()),
            CellType::Bool => Self::Bool(BooleanBuilder::new()),
            CellType::Date => Self::Date(Date32Builder::new()),
            CellType::Timestamp => Self::Timestamp(TimestampMicrosecondBuilder::new().with_timezone(UTC)),
            CellType::Json => Self::Json(StringBuilder::new()),
        }
    }

    /// Returns whether the value is of the column's type.
    fn push(&mut self, value: Option<&Value>) -> bool {
        /// Appends a missing value, or one that can be converted.
        macro_rules! push {
            ($builder:ident, $convert:expr) => {{
                let converted = value.map($convert);
                let fits = !matches!(converted, Some(None));
                $builder.append_option(converted.flatten());
                fits
            }};
        }
        match self {
            Self::String(builder) => push!(builder, text),
            Self::Int64(builder) => push!(builder, integer),
            Self::Float64(builder) => push!(builder, float),
            Self::Bool(builder) => push!(builder, truth),
            Self::Date(builder) => push!(builder, date),
            Self::Timestamp(builder) => push!(builder, timestamp),
            Self::Json(builder) => push!(builder, |value| Some(value.to_string())),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::String(builder) | Self::Json(builder) => ArrayBuilder::finish(builder),
            Self::Int64(builder) => ArrayBuilder::finish(builder),
            Self::Float64(builder) => ArrayBuilder::finish(builder),
            Self::Bool(builder) => ArrayBuilder::finish(builder),
            Self::Date(builder) => ArrayBuilder::finish(builder),
            Self::Timestamp(builder) => ArrayBuilder::finish(builder),
        }
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64().or_else(|| whole(number.as_f64()?)),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// Returns a floating-point number that is an integer, such as `3.0`.
fn whole(number: f64) -> Option<i64> {
    // Up to here, floating-point numbers have every integer.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "within the limits, and without a fraction"
    )]
    (number.fract() == 0.0 && number.abs() <= EXACT).then_some(number as i64)
}

fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(truth) => Some(*truth),
        Value::String(text) => text.trim().to_ascii_lowercase().parse().ok(),
        Value::Number(number) => match number.as_i64() {
            Some(0) => Some(false),
            Some(1) => Some(true),
            _ => None,
        },
        _ => None,
    }
}

fn date(value: &Value) -> Option<i32> {
    let date: NaiveDate = value.as_str()?.trim().parse().ok()?;
    let days = date.signed_duration_since(NaiveDate::default()).num_days();
    i32::try_from(days).ok()
}

fn timestamp(value: &Value) -> Option<i64> {
    let text = value.as_str()?.trim();
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Some(time.timestamp_micros());
    }
    let forms = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f"];
    let mut times = forms.iter().map(|form| NaiveDateTime::parse_from_str(text, form));
    let time = times.find_map(Result::ok)?;
    Some(time.and_utc().timestamp_micros())
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray as _;
    use arrow_array::types::{Date32Type, Float64Type, Int64Type, TimestampMicrosecondType};
    use serde_json::json;

    use super::*;

    fn options(columns: &[(&str, CellType)]) -> ResultOptions {
        ResultOptions {
            rows: "$.rows[*]".to_owned(),
            columns: columns
                .iter()
                .map(|(name, kind)| ((*name).to_owned(), *kind))
                .collect(),
            missing: vec![".".to_owned()],
            ..ResultOptions::default()
        }
    }

    #[test]
    fn each_spelling_of_a_type_is_read() {
        use CellType::{Bool, Date, Float64, Int64, Json, String, Timestamp};
        let options = options(&[
            ("s", String),
            ("i", Int64),
            ("f", Float64),
            ("b", Bool),
            ("d", Date),
            ("t", Timestamp),
            ("j", Json),
        ]);
        let plan = RowPlan::new(&options).unwrap();
        let mut rows = RowsRead::new(&plan).unwrap();
        let time = "1970-01-01T01:00:01+01:00";
        let page = json!({"rows": [
            {"s": "x", "i": "7", "f": "1.5", "b": "TRUE", "d": "1970-01-02", "t": time, "j": {"a": [1]}},
            {"s": 1, "i": 3.0, "f": 2, "b": 0, "d": ".", "t": "1970-01-01 00:00:00.5"},
        ]});
        rows.add(&plan, &page).unwrap();
        let RowsRead::Table(mut table) = rows else {
            panic!("no table")
        };
        let columns: Vec<_> = table.builders.iter_mut().map(Cells::finish).collect();
        let text = |at: usize, row: usize| columns[at].as_string::<i32>().value(row).to_owned();
        assert_eq!((text(0, 0), text(0, 1)), ("x".to_owned(), "1".to_owned()));
        assert_eq!(columns[1].as_primitive::<Int64Type>().values(), &[7, 3]);
        assert_eq!(columns[2].as_primitive::<Float64Type>().values(), &[1.5, 2.0]);
        assert!(columns[3].as_boolean().value(0) && !columns[3].as_boolean().value(1));
        assert_eq!(
            columns[4].as_primitive::<Date32Type>().iter().collect::<Vec<_>>(),
            [Some(1), None]
        );
        let times = columns[5].as_primitive::<TimestampMicrosecondType>();
        assert_eq!(times.values(), &[1_000_000, 500_000]);
        assert_eq!(text(6, 0), r#"{"a":[1]}"#);
        assert!(arrow_array::Array::is_null(&columns[6], 1));
    }

    #[test]
    fn a_value_of_another_type_is_named_with_its_row() {
        for (kind, value) in [
            (CellType::Int64, json!(1.5)),
            (CellType::Int64, json!(u64::MAX)),
            (CellType::Float64, json!("n/a")),
            (CellType::Bool, json!(2)),
            (CellType::Date, json!("31.01.2026")),
            (CellType::Timestamp, json!(0)),
            (CellType::String, json!([])),
        ] {
            let plan = RowPlan::new(&options(&[("x", kind)])).unwrap();
            let mut rows = RowsRead::new(&plan).unwrap();
            let page = json!({"rows": [{"x": null}, {"x": value}]});
            let error = rows.add(&plan, &page).unwrap_err();
            let told = format!(
                "row 2 has a value in `x` that is not of the type `{}`",
                kind.name()
            );
            assert!(error.starts_with(&told), "{error}");
        }
    }

    #[test]
    fn columns_of_nested_values_have_paths() {
        let mut options = options(&[("city", CellType::String)]);
        options.paths.insert("city".to_owned(), "$.place.name".to_owned());
        let plan = RowPlan::new(&options).unwrap();
        let mut rows = RowsRead::new(&plan).unwrap();
        rows.add(&plan, &json!({"rows": [{"place": {"name": "Kyiv"}}]}))
            .unwrap();
        let RowsRead::Table(mut table) = rows else {
            panic!("no table")
        };
        assert_eq!(table.builders[0].finish().as_string::<i32>().value(0), "Kyiv");
        options.paths.insert("town".to_owned(), "$.".to_owned());
        options.rows = "rows".to_owned();
        let mistakes = RowPlan::new(&options).unwrap_err();
        let paths: Vec<_> = mistakes.iter().map(|it| it.path.join(".")).collect();
        assert_eq!(paths, ["rows", "paths.town"]);
    }
}
