//! A table as it is written: batches go to an unlinked file, as an Arrow stream, up to a limit.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, Schema};
use cellblock_interpreter::connector::{Blob, ConnectorError, FetchAnswer};
use cellblock_settings::Size;

/// Writes a table.
pub(crate) struct TableWriter {
    schema: Arc<Schema>,
    writer: StreamWriter<CountingWriter>,
    max_result: u64,
    /// Hint for getting less, for the error.
    repair: &'static str,
}

struct CountingWriter(BufWriter<File>, u64);

impl Write for CountingWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.0.write(bytes)?;
        self.1 += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// Returns the error of a table that cannot be written.
pub(crate) fn unwritten(error: &ArrowError) -> ConnectorError {
    ConnectorError::provider(format!("the answer cannot be written: {error}"))
}

impl TableWriter {
    pub(crate) fn new(schema: Schema, max_result: u64, repair: &'static str) -> Result<Self, ConnectorError> {
        let schema = Arc::new(schema);
        let file = tempfile::tempfile().map_err(|error| unwritten(&error.into()))?;
        let file = CountingWriter(BufWriter::new(file), 0);
        let writer = StreamWriter::try_new(file, &schema).map_err(|error| unwritten(&error))?;
        Ok(Self {
            schema,
            writer,
            max_result,
            repair,
        })
    }

    pub(crate) fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Returns the error if the table has more bytes than the limit with so many more.
    pub(crate) fn check(&self, more: u64) -> Result<(), ConnectorError> {
        if self.writer.get_ref().1 + more <= self.max_result {
            return Ok(());
        }
        let text = format!(
            "the answer is larger than {}, the limit `max_result`; {}",
            Size(self.max_result),
            self.repair
        );
        Err(ConnectorError::provider(text))
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<(), ConnectorError> {
        self.writer.write(batch).map_err(|error| unwritten(&error))?;
        self.check(0)
    }

    pub(crate) fn finish(self) -> Result<FetchAnswer, ConnectorError> {
        let CountingWriter(file, length) = self.writer.into_inner().map_err(|error| unwritten(&error))?;
        let file = file
            .into_inner()
            .map_err(|error| unwritten(&error.into_error().into()))?;
        Ok(FetchAnswer::Arrow(Blob::File(file, length)))
    }
}
