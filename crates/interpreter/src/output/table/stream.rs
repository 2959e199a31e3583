//! An Arrow IPC stream, batch by batch.

use std::collections::VecDeque;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use cellblock_protocol::Blob;
use serde_json::Value;

use super::batch::Layout;
use super::cell::{self, ValueLimit};
use super::message::Messages;
use super::schema::{self, SchemaCheck};
use crate::output::{DecodingLimits, OutputError};

/// The batches of a stream, each checked before Arrow reads it. One is in memory at a time.
pub(crate) struct Batches<'a> {
    messages: Messages<'a>,
    layout: Layout,
    limits: &'a DecodingLimits,
    pub(crate) schema: SchemaRef,
    /// Maximum number of cells.
    most: u64,
    /// Rows of the batches so far.
    pub(crate) rows: u64,
}

impl<'a> Batches<'a> {
    /// Reads the schema; the inner error says why tables of such a schema are not read.
    pub(crate) fn open(
        blob: &'a Blob,
        limits: &'a DecodingLimits,
    ) -> Result<Result<Self, String>, OutputError> {
        let mut messages = Messages::new(blob, limits);
        let Some(first) = messages.next()? else {
            return Err(OutputError::table("its stream is empty"));
        };
        let schema = match schema::check(&first, limits)? {
            SchemaCheck::Plain(schema) => schema,
            SchemaCheck::Unsupported(why) => return Ok(Err(why)),
        };
        Ok(Ok(Self {
            messages,
            layout: Layout::of(&schema),
            limits,
            schema,
            most: limits.free_cells.saturating_add(blob.len().saturating_mul(8)),
            rows: 0,
        }))
    }

    fn read(&mut self) -> Result<Option<RecordBatch>, OutputError> {
        let Some(message) = self.messages.next()? else {
            return Ok(None);
        };
        let batch = self.layout.decode(&message, self.limits)?;
        self.rows += batch.num_rows() as u64;
        let cells = self.rows.saturating_mul(self.schema.fields().len() as u64);
        if cells > self.most {
            return Err(OutputError::Limit {
                what: "table in cells",
                limit: self.most,
                actual: cells,
            });
        }
        Ok(Some(batch))
    }
}

impl Iterator for Batches<'_> {
    type Item = Result<RecordBatch, OutputError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

/// The first and the last rows of a table whose batches are read once.
pub(crate) struct Ends {
    most: (usize, usize),
    room: ValueLimit,
    pub(crate) head: Vec<Vec<Value>>,
    /// Without those in `head`.
    pub(crate) tail: VecDeque<Vec<Value>>,
}

impl Ends {
    /// Keeps at most so many first and last rows of a table with so many columns.
    pub(crate) fn new(columns: usize, head: usize, tail: usize) -> Self {
        Self {
            most: (head, tail),
            room: ValueLimit::for_cells(columns * (head + tail)),
            head: Vec::new(),
            tail: VecDeque::new(),
        }
    }

    /// Takes what the next batch has of them.
    pub(crate) fn take(&mut self, batch: &RecordBatch) {
        let (head, tail) = self.most;
        let rows = batch.num_rows();
        let first = rows.min(head - self.head.len());
        let row = |row| cell::row(batch, row, self.room);
        self.head.extend((0..first).map(row));
        self.tail
            .extend((rows.saturating_sub(tail).max(first)..rows).map(row));
        self.tail.drain(..self.tail.len().saturating_sub(tail));
    }
}
