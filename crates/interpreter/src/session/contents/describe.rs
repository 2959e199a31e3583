//! Rows, columns and types of a table file, without reading all of a large one.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use arrow_csv::WriterBuilder;
use arrow_csv::reader::Format as CsvFormat;
use arrow_ipc::reader::FileReader;
use arrow_schema::{ArrowError, DataType, SchemaRef};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use schemars::JsonSchema;
use serde::Serialize;

use crate::separator::TextLayout;

/// Bytes up to which a file is read whole to count its rows.
const COUNTED: u64 = 8 << 20;
/// Rows that tell the types of a larger one.
const SAMPLE_ROWS: usize = 1000;
/// Bytes that are looked at for them.
const SAMPLE_BYTES: u64 = 1 << 20;
/// Rows that are converted at a time.
const BATCH: usize = 8192;
/// Columns that are described.
const MAX_COLUMNS: usize = 2000;

/// The format of a dataset's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DatasetFormat {
    Csv,
    Parquet,
    Arrow,
    /// Not described.
    Other(&'static str),
}

/// The size of a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Shape")]
pub struct DatasetShape {
    /// Number of rows, if they were counted or estimated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// Whether the number is an estimate, from the length of the first rows.
    pub about: bool,
    /// Separator of a CSV file, if it is not a comma.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub separator: Option<char>,
    /// Its columns; empty if the file is not a supported table.
    pub columns: Vec<ColumnType>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ColumnType {
    /// Its name.
    pub name: String,
    /// Its type, such as `Int64`, `Float64`, `String`, `Date`.
    pub dtype: String,
}

impl DatasetFormat {
    pub(crate) fn of(path: &Path) -> Self {
        let extension = path.extension().and_then(|extension| extension.to_str());
        match extension.unwrap_or_default().to_ascii_lowercase().as_str() {
            "csv" => Self::Csv,
            "parquet" | "pq" => Self::Parquet,
            "arrow" | "feather" | "ipc" => Self::Arrow,
            "tsv" | "tab" => Self::Other("tsv"),
            "json" => Self::Other("json"),
            "ndjson" | "jsonl" => Self::Other("ndjson"),
            "txt" => Self::Other("txt"),
            "xlsx" => Self::Other("xlsx"),
            _ => Self::Other("bin"),
        }
    }

    pub(crate) const fn extension(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
            Self::Other(extension) => extension,
        }
    }
}

/// Describes a file, as well as that goes: what cannot be understood has no columns.
pub(crate) fn describe(file: &File, format: DatasetFormat) -> DatasetShape {
    let described = match format {
        DatasetFormat::Csv => csv(file),
        DatasetFormat::Parquet => parquet(file),
        DatasetFormat::Arrow => arrow(file),
        DatasetFormat::Other(_) => Ok(DatasetShape::default()),
    };
    described.unwrap_or_else(|error| {
        tracing::info!(
            error = &error as &dyn std::error::Error,
            "could not describe a dataset"
        );
        DatasetShape::default()
    })
}

fn csv(file: &File) -> Result<DatasetShape, ArrowError> {
    let bytes = file.metadata()?.len();
    let mut file = file.try_clone()?;
    file.rewind()?;
    let mut head = Vec::new();
    (&mut file).take(SAMPLE_BYTES).read_to_end(&mut head)?;
    let layout = TextLayout::of(&head);
    let bytes = bytes - layout.skipped as u64;
    file.seek(SeekFrom::Start(layout.skipped as u64))?;
    let separator = layout.separator;
    let format = CsvFormat::default().with_header(true).with_delimiter(separator);
    let shape = |schema: &SchemaRef, rows, about| DatasetShape {
        separator: (separator != b',').then_some(char::from(separator)),
        ..shape(schema, rows, about)
    };
    if bytes <= COUNTED {
        let mut content = Vec::new();
        file.take(COUNTED).read_to_end(&mut content)?;
        // Only between quotes is the end of a line not that of a row.
        if memchr::memchr(b'"', &content).is_some() {
            let (schema, rows) = format.infer_schema(&content[..], None)?;
            return Ok(shape(&schema.into(), Some(rows as u64), false));
        }
        let (schema, _) = format.infer_schema(&content[..], Some(SAMPLE_ROWS))?;
        let lines = content.split(|byte| *byte == b'\n');
        let lines = lines.filter(|line| !matches!(line, [] | [b'\r'])).count() as u64;
        return Ok(shape(&schema.into(), Some(lines.saturating_sub(1)), false));
    }
    let mut sample = Vec::new();
    file.take(SAMPLE_BYTES).read_to_end(&mut sample)?;
    // A row that is cut would pass for one that lacks fields.
    let end = memchr::memrchr(b'\n', &sample).map_or(sample.len(), |at| at + 1);
    let sample = &sample[..end];
    let (schema, rows) = format.infer_schema(sample, Some(SAMPLE_ROWS))?;
    let lines = memchr::memchr_iter(b'\n', sample).count().max(1) as u64;
    let header = sample
        .lines()
        .next()
        .map_or(Ok(0), |line| line.map(|line| line.len() as u64 + 1))?;
    let per_row = (end as u64 - header) / lines.saturating_sub(1).max(1);
    let guess = (bytes - header) / per_row.max(1);
    let rows = (rows > 0).then_some(guess);
    Ok(shape(&schema.into(), rows, true))
}

fn parquet(file: &File) -> Result<DatasetShape, ArrowError> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(file.try_clone()?)?;
    let rows = builder.metadata().file_metadata().num_rows();
    Ok(shape(builder.schema(), u64::try_from(rows).ok(), false))
}

fn arrow(file: &File) -> Result<DatasetShape, ArrowError> {
    let mut file = file.try_clone()?;
    file.rewind()?;
    let bytes = file.metadata()?.len();
    let reader = FileReader::try_new(BufReader::new(file), None)?;
    let schema = reader.schema();
    let rows = if bytes <= COUNTED {
        let mut rows = 0;
        for batch in reader {
            rows += batch?.num_rows() as u64;
        }
        Some(rows)
    } else {
        None
    };
    Ok(shape(&schema, rows, false))
}

fn shape(schema: &SchemaRef, rows: Option<u64>, about: bool) -> DatasetShape {
    let columns = schema.fields().iter().take(MAX_COLUMNS).map(|field| ColumnType {
        name: field.name().clone(),
        dtype: name_of(field.data_type()),
    });
    DatasetShape {
        rows,
        about,
        separator: None,
        columns: columns.collect(),
    }
}

fn name_of(kind: &DataType) -> String {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "String".to_owned(),
        DataType::Date32 | DataType::Date64 => "Date".to_owned(),
        DataType::Timestamp(..) => "Datetime".to_owned(),
        DataType::Time32(_) | DataType::Time64(_) => "Time".to_owned(),
        DataType::Duration(_) => "Duration".to_owned(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            "Binary".to_owned()
        }
        DataType::Dictionary(_, values) => name_of(values),
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) | DataType::ListView(_) => {
            "List".to_owned()
        }
        DataType::Struct(_) => "Struct".to_owned(),
        DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => "Decimal".to_owned(),
        other => other.to_string().chars().take(40).collect(),
    }
}

/// Writes a Parquet or Arrow file as CSV, some rows at a time.
pub(crate) fn to_csv(file: &File, format: DatasetFormat, into: &mut File) -> Result<(), ArrowError> {
    let mut source = file.try_clone()?;
    source.rewind()?;
    let mut into = std::io::BufWriter::new(into);
    let mut writer = WriterBuilder::new().with_header(true).build(&mut into);
    match format {
        DatasetFormat::Parquet => {
            let builder = ParquetRecordBatchReaderBuilder::try_new(source)?;
            let empty = arrow_array::RecordBatch::new_empty(builder.schema().clone());
            // A table without rows still has a header.
            writer.write(&empty)?;
            for batch in builder.with_batch_size(BATCH).build()? {
                writer.write(&batch?)?;
            }
        }
        DatasetFormat::Arrow => {
            let reader = FileReader::try_new(BufReader::new(source), None)?;
            writer.write(&arrow_array::RecordBatch::new_empty(reader.schema()))?;
            for batch in reader {
                writer.write(&batch?)?;
            }
        }
        DatasetFormat::Csv | DatasetFormat::Other(_) => {
            return Err(ArrowError::CsvError(
                "only Parquet and Arrow files are converted".into(),
            ));
        }
    }
    drop(writer);
    into.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(content: &[u8]) -> DatasetShape {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content).unwrap();
        describe(&file, DatasetFormat::Csv)
    }

    #[test]
    fn rows_are_counted_whatever_ends_them() {
        for (content, rows) in [
            (&b"a,b\n1,2\n3,4\n"[..], 2),
            (b"a,b\r\n1,2\r\n3,4", 2),
            (b"a,b\n1,2\n\n3,4\n\n", 2),
            (b"a,b\n\"x\ny\",2\n", 1),
            (b"a,b\n", 0),
        ] {
            let shape = described(content);
            assert_eq!((shape.rows, shape.about), (Some(rows), false), "{content:?}");
            assert_eq!(shape.columns.len(), 2);
        }
    }

    #[test]
    fn other_separators_than_commas_are_found() {
        for (content, separator) in [
            (&b"a;b\n1,5;2\n3,5;4\n"[..], ';'),
            (b"sep=;\na;b\n1;2\n3;4\n", ';'),
            (b"a|b\n1|2\n3|4\n", '|'),
        ] {
            let shape = described(content);
            let names: Vec<_> = shape.columns.iter().map(|column| column.name.as_str()).collect();
            assert_eq!(
                (shape.separator, shape.rows, names),
                (Some(separator), Some(2), vec!["a", "b"])
            );
        }
        assert_eq!(described(b"a,b\n1;2,3\n").separator, None);
    }

    #[test]
    fn values_that_are_not_tables_have_no_columns() {
        for content in [&b""[..], b"\xff\xfe\0", b"a,b\n1,2,3\n"] {
            assert_eq!(described(content).columns, [], "{content:?}");
        }
    }
}
