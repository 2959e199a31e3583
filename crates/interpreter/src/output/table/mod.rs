//! Tables: an Arrow IPC stream from a kernel, checked message by message and written as Parquet.
//!
//! Nothing reaches `arrow-ipc` before its lengths, counts and types were checked here, because that
//! crate trusts much of what it reads. One batch is in memory at a time.

mod batch;
mod cell;
mod digest;
pub(crate) mod fetched;
mod message;
mod order;
pub(crate) mod order_cache;
mod parquet;
pub(crate) mod published;
mod repetition;
mod rows;
mod schema;
mod slice;
mod sort_keys;
mod storage;
pub(crate) mod stream;

use std::io::Write;
use std::sync::Arc;

use arrow_array::Array;
use cellblock_protocol as protocol;
use cellblock_protocol::Blob;
use serde_json::Value;

pub(crate) use self::order::RowOrder;
pub use self::rows::TablePage;
pub(crate) use self::rows::{batches, rows};
pub use self::slice::RowsFormat;
pub(crate) use self::slice::{slice, write_arrow, write_csv};

use self::parquet::Writer;
use self::stream::{Batches, Ends};
use super::{DecodingLimits, OutputError};

const HEAD: usize = 10;
const TAIL: usize = 5;

/// A table that was read and written.
#[derive(Debug)]
pub(super) struct Table<W> {
    /// The table as Parquet, or why it has no such form.
    pub(super) file: Result<W, String>,
    pub(super) arrow_types: Vec<String>,
    pub(super) nulls: Vec<u64>,
    pub(super) head: Vec<Vec<Value>>,
    pub(super) tail: Vec<Vec<Value>>,
}

impl Table<std::io::Sink> {
    /// Returns the table without a file.
    pub(super) fn without_file<W>(self) -> Table<W> {
        Table {
            file: Err(String::new()),
            arrow_types: self.arrow_types,
            nulls: self.nulls,
            head: self.head,
            tail: self.tail,
        }
    }
}

/// Reads a table, checks it against what the kernel says of it, and writes it.
pub(super) fn store<W: Write + Send>(
    announced: &protocol::Dataframe,
    blob: &Blob,
    limits: &DecodingLimits,
    into: W,
) -> Result<Table<W>, OutputError> {
    let mut batches = match Batches::open(blob, limits)? {
        Ok(batches) => batches,
        Err(why) => return Ok(unsupported(announced, why)),
    };
    let schema = Arc::clone(&batches.schema);
    compare(announced, &schema)?;
    let stored = stored_rows(announced)?;
    let columns = schema.fields().len();
    let mut writer: Result<_, String> = match Writer::new(into, announced, &schema, None) {
        Ok(writer) => Ok(writer),
        Err(why) => return Ok(unsupported(announced, why)),
    };
    let mut nulls = vec![0_u64; columns];
    let mut ends = Ends::new(columns, HEAD, TAIL);
    while let Some(batch) = batches.next().transpose()? {
        if batches.rows > stored {
            return Err(OutputError::table(format!(
                "it has more than the {stored} rows that were announced"
            )));
        }
        let stored = match &writer {
            Ok(writer) => writer.storable(&batch),
            Err(why) => Err(why.clone()),
        };
        for (count, column) in nulls.iter_mut().zip(batch.columns()) {
            *count += column.logical_null_count() as u64;
        }
        match stored {
            Ok(stored) => {
                ends.take(&stored);
                if let Ok(writer) = &mut writer {
                    writer.write(&stored)?;
                }
            }
            Err(why) => {
                ends.take(&batch);
                writer = Err(why);
            }
        }
    }
    if batches.rows != stored {
        return Err(OutputError::table(format!(
            "it has {} rows where {stored} were announced",
            batches.rows
        )));
    }
    let (head, tail) = apart(announced, ends.head, ends.tail.into());
    let arrow_types = schema
        .fields()
        .iter()
        .map(|field| field.data_type().to_string())
        .collect();
    Ok(Table {
        file: match writer {
            Ok(writer) => Ok(writer.finish()?),
            Err(why) => Err(why),
        },
        arrow_types,
        nulls,
        head,
        tail,
    })
}

fn unsupported<W>(announced: &protocol::Dataframe, why: String) -> Table<W> {
    let columns = announced.columns.len();
    Table {
        file: Err(why),
        arrow_types: vec![String::new(); columns],
        nulls: vec![0; columns],
        head: vec![],
        tail: vec![],
    }
}

/// The names of the columns of a stream, as far as it has a schema; for fuzzing.
pub(super) fn fuzz_columns(blob: &Blob, limits: &DecodingLimits) -> Vec<String> {
    match Batches::open(blob, limits) {
        Ok(Ok(batches)) => {
            let fields = batches.schema.fields().iter();
            fields.map(|it| it.name().clone()).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the number of rows that the stream must have.
fn stored_rows(announced: &protocol::Dataframe) -> Result<u64, OutputError> {
    if !announced.truncated {
        return Ok(announced.rows);
    }
    let stored = announced.head_rows.saturating_add(announced.tail_rows);
    if stored > announced.rows {
        let rows = announced.rows;
        return Err(OutputError::table(format!(
            "its head and tail have {stored} rows, but all of it only {rows}"
        )));
    }
    Ok(stored)
}

fn compare(announced: &protocol::Dataframe, schema: &arrow_schema::Schema) -> Result<(), OutputError> {
    let (listed, present) = (announced.columns.len(), schema.fields().len());
    if listed != present {
        return Err(OutputError::table(format!(
            "{listed} columns are listed, but its stream has {present}"
        )));
    }
    let same = announced
        .columns
        .iter()
        .zip(schema.fields())
        .all(|(column, field)| column.name == *field.name());
    if !same {
        return Err(OutputError::table(
            "the names of its columns are not those of its stream",
        ));
    }
    Ok(())
}

/// Takes from the shown rows those that a cut table does not have side by side.
fn apart(
    announced: &protocol::Dataframe,
    mut head: Vec<Vec<Value>>,
    mut tail: Vec<Vec<Value>>,
) -> (Vec<Vec<Value>>, Vec<Vec<Value>>) {
    if announced.truncated {
        let split = usize::try_from(announced.head_rows)
            .unwrap_or(usize::MAX)
            .min(head.len());
        let mut behind = head.split_off(split);
        behind.append(&mut tail);
        let wanted = usize::try_from(announced.tail_rows)
            .unwrap_or(usize::MAX)
            .min(TAIL);
        tail = behind.split_off(behind.len().saturating_sub(wanted));
    }
    (head, tail)
}

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod tests;
