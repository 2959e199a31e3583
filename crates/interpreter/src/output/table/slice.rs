//! Rows of a stored table, as bytes in a format.

use std::fs::File;
use std::io::{self, BufWriter, Seek as _, Write};

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::ArrowError;
use cellblock_artifact::ArtifactId;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::order::RowOrder;
use super::rows::SelectedRows;
use crate::output::OutputError;

/// Maximum number of bytes of a slice.
const BYTES: u64 = 64 << 20;

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

/// Writes so many rows of a table that this host has stored as Parquet, in an order or as they are,
/// into a file without a name; `None` if they are more than 64 MiB.
pub(crate) fn slice(
    table: ArtifactId,
    file: File,
    order: Option<RowOrder>,
    first_row: u64,
    rows: u32,
    format: RowsFormat,
) -> Result<Option<File>, OutputError> {
    let mut into = BoundedFile::new(tempfile::tempfile()?);
    let selected = match order {
        Some(order) => SelectedRows::in_order(table, file, order, first_row, rows)?,
        None => SelectedRows::of(file, first_row, rows)?,
    };
    let written = write(selected, first_row, format, &mut into);
    if into.is_full {
        return Ok(None);
    }
    written?;
    let mut file = into.file.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.rewind()?;
    Ok(Some(file))
}

fn write(
    selected: SelectedRows,
    first_row: u64,
    format: RowsFormat,
    into: &mut impl Write,
) -> Result<(), OutputError> {
    match format {
        RowsFormat::Json => {
            let fields = selected.schema.fields().iter();
            let columns: Vec<_> = fields.map(|field| field.name().clone()).collect();
            let (columns, total) = (json!(columns), selected.total);
            write!(
                into,
                r#"{{"columns":{columns},"total_rows":{total},"first_row":{first_row},"rows":["#
            )?;
            for (index, row) in selected.values().enumerate() {
                if index > 0 {
                    into.write_all(b",")?;
                }
                serde_json::to_writer(&mut *into, &row?)?;
            }
            into.write_all(b"]}")?;
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

/// A file up to the limit.
struct BoundedFile {
    file: BufWriter<File>,
    room: u64,
    is_full: bool,
}

impl BoundedFile {
    fn new(file: File) -> Self {
        Self {
            file: BufWriter::new(file),
            room: BYTES,
            is_full: false,
        }
    }
}

impl Write for BoundedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(room) = self.room.checked_sub(bytes.len() as u64) else {
            self.is_full = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        };
        self.room = room;
        self.file.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array};
    use parquet::arrow::ArrowWriter;

    use super::*;

    fn table(values: impl IntoIterator<Item = i64>) -> File {
        let values: ArrayRef = Arc::new(Int64Array::from_iter_values(values));
        let table = RecordBatch::try_from_iter([("n", values)]).unwrap();
        let mut file = tempfile::tempfile().unwrap();
        let mut writer = ArrowWriter::try_new(&mut file, table.schema(), None).unwrap();
        writer.write(&table).unwrap();
        writer.close().unwrap();
        file
    }

    fn read(id: ArtifactId, file: &File, descending: bool, first: u64) -> String {
        let order = RowOrder {
            column: 0,
            descending,
        };
        let file = file.try_clone().unwrap();
        let written = slice(id, file, Some(order), first, 2, RowsFormat::Csv).unwrap();
        let mut text = String::new();
        written.unwrap().read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn the_next_page_of_a_sorted_table_is_not_sorted_again() {
        let id = ArtifactId::of(b"the next page of a sorted table is not sorted again");
        let sorted = table([3, 1, 4, 2]);
        assert_eq!(read(id, &sorted, false, 0), "n\n1\n2\n");
        // Other values under the same name show whose order it is.
        let other = table([10, 20, 30, 40]);
        assert_eq!(read(id, &other, false, 2), "n\n10\n30\n");
        // Another order is another one.
        assert_eq!(read(id, &other, true, 0), "n\n40\n30\n");
        assert_eq!(read(id, &other, false, 2), "n\n30\n40\n");
    }

    #[test]
    fn a_slice_over_the_limit_is_none() {
        let rows = i64::try_from(BYTES / 4).unwrap();
        let file = table((0..rows).map(|_| 1_000_000_000));
        let id = ArtifactId::of(b"a slice over the limit is none");
        let rows = u32::try_from(rows).unwrap();
        assert!(slice(id, file, None, 0, rows, RowsFormat::Csv).unwrap().is_none());
    }
}
