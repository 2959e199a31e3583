//! Tables as Parquet, the same bytes for the same table.

use std::fs::File;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use cellblock_protocol as protocol;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use serde_json::json;

use super::schema::PANDAS;
use crate::output::OutputError;

/// The rows of a row group, which is also how many rows a kernel sends at a time.
const GROUP_ROWS: usize = 65_536;
/// The bytes after which a row group ends early, as it is held in memory until then.
const GROUP_BYTES: usize = 128 << 20;
/// The annotation with what Parquet does not say of a table: its names and types cover its identity.
const DESCRIPTION: &str = "cellblock";
/// The annotation by which a kernel restores a frame of a dataset.
const FRAME: &str = "cellblock.frame";

/// Writes one table to an unlinked file.
pub(super) struct Writer(ArrowWriter<File>);

impl Writer {
    /// Begins a file, with what restores a dataset's frame; the inner error says why Parquet has no such table.
    pub(super) fn new(
        announced: &protocol::Dataframe,
        schema: &SchemaRef,
        frame: Option<&str>,
    ) -> Result<Result<Self, String>, OutputError> {
        if schema.fields().is_empty() {
            return Ok(Err("a table without columns has no Parquet form".into()));
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
        let schema = SchemaRef::new(
            schema
                .as_ref()
                .clone()
                .with_metadata(std::collections::HashMap::new()),
        );
        let properties = WriterProperties::builder()
            .set_created_by("cellblock".to_owned())
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .set_max_row_group_bytes(Some(GROUP_BYTES))
            .set_key_value_metadata(Some(annotations))
            .build();
        match ArrowWriter::try_new(tempfile::tempfile()?, schema, Some(properties)) {
            Ok(writer) => Ok(Ok(Self(writer))),
            Err(error) => Ok(Err(format!("this table has no Parquet form: {error}"))),
        }
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<(), OutputError> {
        Ok(self.0.write(batch)?)
    }

    pub(super) fn finish(self) -> Result<File, OutputError> {
        Ok(self.0.into_inner()?)
    }
}
