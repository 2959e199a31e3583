//! Tables as Parquet, the same bytes for the same table.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Write};
use std::thread::{self, JoinHandle};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use cellblock_protocol as protocol;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves,
};
use parquet::arrow::{ArrowWriter, encode_arrow_schema};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;
use serde_json::json;

use super::schema::PANDAS;
use super::{repetition, storage};
use crate::output::OutputError;

/// The rows of a row group, which is also how many rows a kernel sends at a time.
const GROUP_ROWS: usize = 65_536;
/// The bytes after which a row group ends early, and those of all row groups that are encoded at
/// the same time, as they are held in memory.
const GROUP_BYTES: usize = 128 << 20;
/// Maximum number of row groups that are encoded at the same time.
const MOST_THREADS: usize = 4;
/// The annotation with what Parquet does not say of a table: its names and types cover its identity.
const DESCRIPTION: &str = "cellblock";
/// The annotation by which a kernel restores a frame of a dataset.
const FRAME: &str = "cellblock.frame";
/// The annotation with the types of a table of which Parquet lacks some, by which a kernel restores
/// their units.
const TYPES: &str = "cellblock.schema";

type ColumnChunks = Result<Vec<ArrowColumnChunk>, OutputError>;

/// Writes one table. Its row groups are encoded side by side, and written in their order.
pub(super) struct Writer<W: Write> {
    file: SerializedFileWriter<W>,
    factory: ArrowRowGroupWriterFactory,
    schema: SchemaRef,
    /// The row group that is being filled.
    group: RowGroup,
    /// The row groups that are being encoded, with their sizes in bytes.
    encoding: VecDeque<(JoinHandle<ColumnChunks>, usize)>,
    /// Number of earlier row groups.
    groups: usize,
}

/// Rows that are in memory.
#[derive(Default)]
pub(super) struct RowGroup {
    pub(super) batches: Vec<RecordBatch>,
    pub(super) rows: usize,
    bytes: usize,
}

impl<W: Write + Send> Writer<W> {
    /// Begins to write, with what restores a dataset's frame; the error says why Parquet has no such table.
    pub(super) fn new(
        into: W,
        announced: &protocol::Dataframe,
        schema: &SchemaRef,
        frame: Option<&str>,
    ) -> Result<Self, String> {
        if schema.fields().is_empty() {
            return Err("a table without columns has no Parquet form".into());
        }
        let description = json!({
            "library": announced.library,
            "columns": announced.columns,
            "index": announced.index,
            "series": announced.series,
            "rows": announced.rows,
            "head_rows": announced.truncated.then_some(announced.head_rows),
        });
        let mut annotations = vec![KeyValue::new(DESCRIPTION.to_owned(), description.to_string())];
        annotations.extend(frame.map(|frame| KeyValue::new(FRAME.to_owned(), frame.to_owned())));
        // It tells pandas how many rows there are, which is not so for a part of them.
        let pandas = schema.metadata().get(PANDAS).filter(|_| !announced.truncated);
        annotations.extend(pandas.map(|value| KeyValue::new(PANDAS.to_owned(), value.clone())));
        let given = schema.as_ref().clone().with_metadata(HashMap::new());
        let schema = storage::schema(&given);
        if *schema != given {
            annotations.push(KeyValue::new(TYPES.to_owned(), encode_arrow_schema(&given)));
        }
        let properties = properties().set_key_value_metadata(Some(annotations)).build();
        let begun = ArrowWriter::try_new(into, SchemaRef::clone(&schema), Some(properties));
        match begun.and_then(ArrowWriter::into_serialized_writer) {
            Ok((file, factory)) => Ok(Self {
                file,
                factory,
                schema,
                group: RowGroup::default(),
                encoding: VecDeque::new(),
                groups: 0,
            }),
            Err(error) => Err(format!("this table has no Parquet form: {error}")),
        }
    }

    /// Converts a batch to the types that are written; the error says why Parquet has no such column.
    pub(super) fn storable(&self, batch: &RecordBatch) -> Result<RecordBatch, String> {
        storage::batch(batch, &self.schema)
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<(), OutputError> {
        let bytes_per_row = batch.get_array_memory_size() / batch.num_rows().max(1);
        let mut offset = 0;
        while offset < batch.num_rows() {
            let room = (GROUP_BYTES.saturating_sub(self.group.bytes)) / bytes_per_row.max(1);
            let fitting = room.min(GROUP_ROWS - self.group.rows).max(1);
            let rows = fitting.min(batch.num_rows() - offset);
            self.group.batches.push(batch.slice(offset, rows));
            self.group.rows += rows;
            self.group.bytes += rows * bytes_per_row;
            offset += rows;
            if self.group.rows == GROUP_ROWS || self.group.bytes >= GROUP_BYTES {
                self.encode()?;
            }
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<W, OutputError> {
        while !self.encoding.is_empty() {
            self.append_first()?;
        }
        // A small table costs no thread.
        if self.group.rows > 0 {
            let (columns, group) = self.next_group()?;
            let encoded = encode(columns, &self.schema, &group)?;
            self.append(encoded)?;
        }
        Ok(self.file.into_inner()?)
    }

    /// Begins to encode the rows so far as one row group.
    fn encode(&mut self) -> Result<(), OutputError> {
        let threads = thread::available_parallelism().map_or(1, |it| it.get().min(MOST_THREADS));
        let (columns, group) = self.next_group()?;
        while !self.encoding.is_empty()
            && (self.encoding.len() >= threads || self.encoding_bytes() + group.bytes > GROUP_BYTES)
        {
            self.append_first()?;
        }
        let (bytes, schema) = (group.bytes, SchemaRef::clone(&self.schema));
        let thread = thread::Builder::new().name("parquet".to_owned());
        let thread = thread.spawn(move || encode(columns, &schema, &group))?;
        self.encoding.push_back((thread, bytes));
        Ok(())
    }

    fn next_group(&mut self) -> Result<(Vec<ArrowColumnWriter>, RowGroup), OutputError> {
        if self.groups == 0 {
            self.leave_out_dictionaries()?;
        }
        let columns = self.factory.create_column_writers(self.groups)?;
        self.groups += 1;
        Ok((columns, std::mem::take(&mut self.group)))
    }

    /// Looks at the first rows for columns that a dictionary would not make smaller. It takes more
    /// time than everything else together.
    fn leave_out_dictionaries(&mut self) -> Result<(), OutputError> {
        let fields = self.schema.fields().iter().enumerate();
        let distinct: Vec<_> = fields
            .filter(|(column, _)| !repetition::pays(&self.group, *column))
            .map(|(_, field)| ColumnPath::from(vec![field.name().clone()]))
            .collect();
        if distinct.is_empty() {
            return Ok(());
        }
        let without = distinct.into_iter().fold(properties(), |properties, column| {
            properties.set_column_dictionary_enabled(column, false)
        });
        // Only to be asked for its factory.
        let schema = SchemaRef::clone(&self.schema);
        let other = ArrowWriter::try_new(io::sink(), schema, Some(without.build()))?;
        (_, self.factory) = other.into_serialized_writer()?;
        Ok(())
    }

    fn encoding_bytes(&self) -> usize {
        self.encoding.iter().map(|(_, bytes)| bytes).sum()
    }

    /// Writes the first row group that is being encoded, once it is.
    fn append_first(&mut self) -> Result<(), OutputError> {
        let Some((thread, _)) = self.encoding.pop_front() else {
            return Ok(());
        };
        let encoded = thread.join().expect("encoding a row group does not panic")?;
        self.append(encoded)
    }

    fn append(&mut self, columns: Vec<ArrowColumnChunk>) -> Result<(), OutputError> {
        let mut group = self.file.next_row_group()?;
        for column in columns {
            column.append_to_row_group(&mut group)?;
        }
        group.close()?;
        Ok(())
    }
}

/// Properties of every table.
fn properties() -> WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_created_by("cellblock".to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
}

fn encode(mut columns: Vec<ArrowColumnWriter>, schema: &SchemaRef, group: &RowGroup) -> ColumnChunks {
    for batch in &group.batches {
        let mut writers = columns.iter_mut();
        for (field, column) in schema.fields().iter().zip(batch.columns()) {
            for leaf in compute_leaves(field, column)? {
                let writer = writers.next().expect("a writer for each leaf of the schema");
                writer.write(&leaf)?;
            }
        }
    }
    Ok(columns
        .into_iter()
        .map(ArrowColumnWriter::close)
        .collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read as _, Seek as _};
    use std::sync::Arc;

    use ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use arrow_array::{ArrayRef, Int64Array, StringArray};
    use cellblock_protocol::DataframeLibrary;

    use super::*;

    const ROWS: usize = 3 * GROUP_ROWS + 17;

    fn table() -> RecordBatch {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..i64::try_from(ROWS).unwrap()));
        let texts = (0..ROWS).map(|row| (row % 3 != 0).then(|| format!("text {}", row % 1000)));
        let texts: ArrayRef = Arc::new(texts.collect::<StringArray>());
        RecordBatch::try_from_iter([("number", numbers), ("text", texts)]).unwrap()
    }

    fn written(table: &RecordBatch, batch_rows: usize) -> File {
        let announced = protocol::Dataframe {
            name: None,
            library: DataframeLibrary::Pyarrow,
            rows: ROWS as u64,
            columns: Vec::new(),
            index: Vec::new(),
            truncated: false,
            head_rows: 0,
            tail_rows: 0,
            series: false,
        };
        let mut writer =
            Writer::new(tempfile::tempfile().unwrap(), &announced, &table.schema(), None).unwrap();
        for offset in (0..ROWS).step_by(batch_rows) {
            writer
                .write(&table.slice(offset, batch_rows.min(ROWS - offset)))
                .unwrap();
        }
        writer.finish().unwrap()
    }

    fn bytes(mut file: &File) -> Vec<u8> {
        let mut bytes = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn row_groups_that_are_encoded_side_by_side_keep_their_order_whatever_the_batches() {
        let table = table();
        let file = written(&table, GROUP_ROWS);
        assert_eq!(bytes(&file), bytes(&written(&table, GROUP_ROWS)));
        for batch_rows in [GROUP_ROWS, ROWS, 10_007] {
            let file = written(&table, batch_rows);
            let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
            let groups = reader
                .metadata()
                .row_groups()
                .iter()
                .map(::parquet::file::metadata::RowGroupMetaData::num_rows);
            let full = i64::try_from(GROUP_ROWS).unwrap();
            assert_eq!(groups.collect::<Vec<_>>(), [full, full, full, 17]);
            let mut row = 0;
            for batch in reader.build().unwrap() {
                let batch = batch.unwrap();
                assert_eq!(batch.columns(), table.slice(row, batch.num_rows()).columns());
                row += batch.num_rows();
            }
            assert_eq!(row, ROWS);
        }
    }
}
