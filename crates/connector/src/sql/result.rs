//! The rows of a call, as they come: into columns, and from there into the answer, within the limits.

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use cellblock_interpreter::connector::{ConnectorError, ConnectorErrorKind, FetchAnswer};

use super::cells::{Cell, Column};
use crate::columns::type_name;
use crate::table_writer::{TableWriter, unwritten};

/// Rows of a batch.
const BATCH: usize = 8192;
/// About how many bytes of values are in memory.
const BATCH_BYTES: u64 = 4 << 20;
/// Hint for getting a smaller answer.
const LESS: &str = "select fewer columns or rows, or aggregate them in SQL";

/// Maximum size of an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) max_rows: u64,
    pub(super) max_result: u64,
}

/// Rows that are read.
pub(super) struct ResultRows {
    columns: Vec<Column>,
    writer: TableWriter,
    max_rows: u64,
    rows: u64,
    in_batch: usize,
    bytes: u64,
}

/// Returns the columns of an answer, which must have names of their own.
pub(super) fn schema(columns: Vec<(String, DataType)>) -> Result<Schema, ConnectorError> {
    let invalid = |text: String| Err(ConnectorError::new(ConnectorErrorKind::InvalidParameter, text));
    if columns.is_empty() {
        return invalid(
            "the statement returns no columns; only statements that read can be run, such as `select`"
                .to_owned(),
        );
    }
    let mut fields: Vec<Field> = Vec::with_capacity(columns.len());
    for (name, kind) in columns {
        if fields.iter().any(|field| *field.name() == name) {
            return invalid(format!(
                "two columns of the result have the name `{name}`; give one another name with `as`"
            ));
        }
        fields.push(Field::new(name, kind, true));
    }
    Ok(Schema::new(fields))
}

impl ResultRows {
    pub(super) fn new(schema: Schema, limits: Limits) -> Result<Self, ConnectorError> {
        let columns = schema.fields().iter();
        let columns = columns.map(|field| Column::new(field.data_type())).collect();
        Ok(Self {
            columns,
            writer: TableWriter::new(schema, limits.max_result, LESS)?,
            max_rows: limits.max_rows,
            rows: 0,
            in_batch: 0,
            bytes: 0,
        })
    }

    /// Adds a row.
    pub(super) fn push<'a>(
        &mut self,
        cells: impl IntoIterator<Item = Result<Cell<'a>, String>>,
    ) -> Result<(), ConnectorError> {
        if self.rows == self.max_rows {
            let text = format!(
                "the answer has more than {} rows, the limit `max_rows`; select fewer rows, or aggregate \
                 them in SQL",
                self.max_rows
            );
            return Err(ConnectorError::provider(text));
        }
        self.rows += 1;
        for (at, (column, cell)) in self.columns.iter_mut().zip(cells).enumerate() {
            let field = self.writer.schema().field(at);
            let wrong = |problem: &str| {
                let text = format!(
                    "row {} of the column `{}`: {problem}; convert the column in SQL, such as `cast({} as \
                     {})`",
                    self.rows,
                    field.name(),
                    field.name(),
                    "text"
                );
                ConnectorError::new(ConnectorErrorKind::Parse, text)
            };
            let cell = cell.map_err(|problem| wrong(&problem))?;
            self.bytes += cell.size();
            self.writer.check(self.bytes)?;
            if !column.push(&cell) {
                let problem = format!(
                    "the value {} is not of the type of the rows before, {}",
                    shown(&cell),
                    type_name(field.data_type())
                );
                return Err(wrong(&problem));
            }
        }
        self.in_batch += 1;
        if self.in_batch == BATCH || self.bytes >= BATCH_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ConnectorError> {
        if self.in_batch == 0 {
            return Ok(());
        }
        let columns = self.columns.iter_mut().map(Column::finish).collect();
        let batch = RecordBatch::try_new(self.writer.schema().clone(), columns);
        let batch = batch.map_err(|error: ArrowError| unwritten(&error))?;
        (self.in_batch, self.bytes) = (0, 0);
        self.writer.write(&batch)
    }

    pub(super) fn finish(mut self) -> Result<FetchAnswer, ConnectorError> {
        self.flush()?;
        self.writer.finish()
    }
}

/// Returns a value for an error.
fn shown(cell: &Cell<'_>) -> String {
    match cell {
        Cell::Text(text) => {
            let start: String = text.chars().take(40).collect();
            format!("`{start}`")
        }
        Cell::Int(value) => value.to_string(),
        Cell::UInt(value) => value.to_string(),
        Cell::Float(value) => value.to_string(),
        Cell::Bytes(_) => "of bytes".to_owned(),
        other => format!("{other:?}"),
    }
}
