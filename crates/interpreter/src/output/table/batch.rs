//! The batches of a table: counts and lengths are checked against the schema and the body before
//! Arrow reads them.

use std::collections::HashMap;

use arrow_array::RecordBatch;
use arrow_ipc::reader::read_record_batch;
use arrow_ipc::{FieldNode, MessageHeader, MetadataVersion};
use arrow_schema::{DataType, SchemaRef};

use super::message::Raw;
use crate::output::{DecodingLimits, OutputError};

/// Required alignment of an Arrow buffer.
const ALIGNMENT: u64 = 8;

/// Required form of each batch of a schema.
pub(super) struct Layout {
    schema: SchemaRef,
    nodes: Vec<Node>,
    /// Size of one value of each buffer, in bytes.
    units: Vec<u64>,
}

/// Required form of one array of a batch.
struct Node {
    /// Whether it is a column rather than a part of one.
    column: bool,
    /// Whether its values need no bytes, so that only a limit bounds their number.
    free: bool,
}

impl Layout {
    pub(super) fn of(schema: &SchemaRef) -> Self {
        let mut layout = Self {
            schema: schema.clone(),
            nodes: Vec::new(),
            units: Vec::new(),
        };
        for field in schema.fields() {
            layout.add(field.data_type(), true);
        }
        layout
    }

    fn add(&mut self, data_type: &DataType, column: bool) {
        self.nodes.push(Node {
            column,
            free: *data_type == DataType::Null,
        });
        // All types except null start with a validity bitmap.
        match data_type {
            DataType::Null => {}
            DataType::Struct(_) | DataType::FixedSizeList(..) => self.units.push(1),
            DataType::Utf8 | DataType::Binary => self.units.extend([1, 4, 1]),
            DataType::LargeUtf8 | DataType::LargeBinary => self.units.extend([1, 8, 1]),
            DataType::List(_) | DataType::Map(..) => self.units.extend([1, 4]),
            DataType::LargeList(_) => self.units.extend([1, 8]),
            fixed => self
                .units
                .extend([1, fixed.primitive_width().unwrap_or(1) as u64]),
        }
        match data_type {
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::FixedSizeList(item, _)
            | DataType::Map(item, _) => self.add(item.data_type(), false),
            DataType::Struct(fields) => fields.iter().for_each(|field| self.add(field.data_type(), false)),
            _ => {}
        }
    }

    /// Checks a message and lets Arrow read it.
    pub(super) fn decode(&self, raw: &Raw, limits: &DecodingLimits) -> Result<RecordBatch, OutputError> {
        let message = raw.message()?;
        let batch = match message.header_type() {
            MessageHeader::RecordBatch => message.header_as_record_batch(),
            MessageHeader::DictionaryBatch => {
                return Err(OutputError::table("it has a dictionary that nothing uses"));
            }
            _ => None,
        };
        let batch = batch.ok_or_else(|| OutputError::table("a message of its stream is not a batch"))?;
        if batch.compression().is_some() {
            return Err(OutputError::table("a batch is compressed; send it uncompressed"));
        }
        if batch
            .variadicBufferCounts()
            .is_some_and(|counts| !counts.is_empty())
        {
            return Err(OutputError::table(
                "a batch has buffers of views that its schema does not have",
            ));
        }
        let rows =
            u64::try_from(batch.length()).map_err(|_| OutputError::table("a batch has a negative length"))?;
        if rows > limits.batch_rows {
            return Err(OutputError::Limit {
                what: "Arrow batch in rows",
                limit: limits.batch_rows,
                actual: rows,
            });
        }
        self.check_nodes(
            rows,
            batch.nodes().into_iter().flatten(),
            raw.body.len() as u64,
            limits,
        )?;
        let buffers = batch.buffers().into_iter().flatten();
        self.check_buffers(
            buffers.map(|buffer| (buffer.offset(), buffer.length())),
            raw.body.len() as u64,
        )?;
        let version = MetadataVersion::V5;
        let read = read_record_batch(
            &raw.body,
            batch,
            self.schema.clone(),
            &HashMap::new(),
            None,
            &version,
        )?;
        Ok(read)
    }

    fn check_nodes<'a>(
        &self,
        rows: u64,
        nodes: impl Iterator<Item = &'a FieldNode>,
        body: u64,
        limits: &DecodingLimits,
    ) -> Result<(), OutputError> {
        let most = limits.batch_rows.max(body.saturating_mul(8));
        let mut count = 0;
        for node in nodes {
            let Some(expected) = self.nodes.get(count) else {
                break;
            };
            count += 1;
            let length = u64::try_from(node.length()).unwrap_or(u64::MAX);
            let nulls = u64::try_from(node.null_count()).unwrap_or(u64::MAX);
            if nulls > length || (expected.column && length != rows) {
                return Err(OutputError::table(
                    "the length of a column is not that of its batch",
                ));
            }
            if length > if expected.free { limits.batch_rows } else { most } {
                return Err(OutputError::table("an array is longer than its bytes"));
            }
        }
        if count != self.nodes.len() {
            return Err(OutputError::table("a batch has fewer arrays than its schema"));
        }
        Ok(())
    }

    /// Buffers must be inside the body and contain whole values. They must not overlap, so that the
    /// decoded data stays in proportion to the sent bytes.
    fn check_buffers(&self, buffers: impl Iterator<Item = (i64, i64)>, body: u64) -> Result<(), OutputError> {
        let (mut units, mut sum) = (self.units.iter(), 0_u64);
        for (offset, length) in buffers {
            let Some(unit) = units.next() else {
                return Err(OutputError::table("a batch has more buffers than its schema"));
            };
            let (Ok(offset), Ok(length)) = (u64::try_from(offset), u64::try_from(length)) else {
                return Err(OutputError::table("a buffer has a negative length or place"));
            };
            sum = sum.saturating_add(length);
            if offset.checked_add(length).is_none_or(|end| end > body) || sum > body {
                return Err(OutputError::table("a buffer lies outside of its message"));
            }
            if offset % ALIGNMENT != 0 || length % unit != 0 {
                return Err(OutputError::table(
                    "a buffer is not aligned or ends in the middle of a value",
                ));
            }
        }
        if units.next().is_some() {
            return Err(OutputError::table("a batch has fewer buffers than its schema"));
        }
        Ok(())
    }
}
