//! Rows of a stored table, as bytes in a format.

use std::fs::File;
use std::io::{self, Write};

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::ArrowError;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::order::RowOrder;
use super::rows::SelectedRows;
use crate::output::OutputError;

/// Maximum number of bytes of a slice.
const BYTES: usize = 64 << 20;

/// A format of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RowsFormat {
    /// An object with `columns`, `total_rows`, `first_row` and `rows`; long cells are cut.
    #[default]
    Json,
    /// CSV with a header.
    Csv,
    /// An Arrow IPC stream.
    Arrow,
}

impl RowsFormat {
    /// Returns the format's media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Csv => "text/csv; charset=utf-8",
            Self::Arrow => "application/vnd.apache.arrow.stream",
        }
    }
}

/// Writes so many rows of a table that this host has stored as Parquet, in an order or as they are; `None` if they are more than 64 MiB.
pub(crate) fn slice(
    file: File,
    order: Option<RowOrder>,
    first_row: u64,
    rows: u32,
    format: RowsFormat,
) -> Result<Option<Vec<u8>>, OutputError> {
    let mut into = Bounded::default();
    let selected = match order {
        Some(order) => SelectedRows::in_order(file, order, first_row, rows)?,
        None => SelectedRows::of(file, first_row, rows)?,
    };
    let written = write(selected, first_row, format, &mut into);
    if into.is_full {
        return Ok(None);
    }
    written.map(|()| Some(into.bytes))
}

fn write(
    selected: SelectedRows,
    first_row: u64,
    format: RowsFormat,
    into: &mut Bounded,
) -> Result<(), OutputError> {
    match format {
        RowsFormat::Json => {
            let fields = selected.schema.fields().iter();
            let columns: Vec<_> = fields.map(|field| field.name().clone()).collect();
            let total = selected.total;
            let answer = json!({
                "columns": columns,
                "total_rows": total,
                "first_row": first_row,
                "rows": selected.values()?,
            });
            serde_json::to_writer(into, &answer)?;
        }
        RowsFormat::Csv => {
            write_csv(selected.batches, into)?;
        }
        RowsFormat::Arrow => {
            write_arrow(selected.batches, into)?;
        }
    }
    Ok(())
}

/// Writes rows as CSV with a header, also if there are none.
pub(crate) fn write_csv(batches: impl RecordBatchReader, into: &mut impl Write) -> Result<(), ArrowError> {
    let mut writer = arrow_csv::WriterBuilder::new().with_header(true).build(into);
    writer.write(&RecordBatch::new_empty(batches.schema()))?;
    for batch in batches {
        writer.write(&batch?)?;
    }
    Ok(())
}

/// Writes rows as an Arrow IPC stream.
pub(crate) fn write_arrow(batches: impl RecordBatchReader, into: &mut impl Write) -> Result<(), ArrowError> {
    let mut writer = StreamWriter::try_new(into, &batches.schema())?;
    for batch in batches {
        writer.write(&batch?)?;
    }
    writer.finish()
}

/// Bytes up to the limit.
#[derive(Default)]
struct Bounded {
    bytes: Vec<u8>,
    is_full: bool,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > BYTES {
            self.is_full = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
