//! Measures how many bytes of a large Parquet file a call reads for one of its 50 columns.
//!
//! `cargo run -p cellblock-connector --example one_column [FOLDER]` writes 1 GB below the folder,
//! by default that of temporary files, and removes it.

#![expect(clippy::print_stdout, reason = "the result of a measurement")]

use std::error::Error;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use arrow_array::{ArrayRef, Float64Array, RecordBatch};
use cellblock_connector::{FilesConnector, TypeOptions};
use cellblock_interpreter::connector::{Connector as _, FetchAnswer};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const COLUMNS: u64 = 50;
const BATCH: usize = 125_000;
const BATCHES: usize = 20;

#[tokio::main]
async fn main() -> Result<()> {
    let below = std::env::args_os()
        .nth(1)
        .map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = tempfile::tempdir_in(below)?;
    let path = folder.path().join("wide.parquet");
    write(&path)?;
    let size = fs::metadata(&path)?.len();
    let options = TypeOptions::read(&serde_json::json!({
        "root": ".", "tables": {"wide": "*.parquet"}, "timeout": "10m",
    }))?;
    let lake = FilesConnector::new("lake", &options, folder.path().to_owned())
        .map_err(|mistakes| format!("{mistakes:?}"))?;
    let serde_json::Value::Object(arguments) = serde_json::json!({"columns": ["c7"]}) else {
        return Err("no arguments".into());
    };
    let (before, begun) = (read_so_far()?, Instant::now());
    let answer = lake
        .fetch("wide", arguments, begun + options.calls.timeout)
        .await
        .map_err(|error| error.to_string())?;
    let (time, read) = (begun.elapsed(), read_so_far()? - before);
    let FetchAnswer::Arrow(answer) = answer else {
        return Err("the answer is not a table".into());
    };
    println!(
        "one of {COLUMNS} columns of {size} bytes: {read} bytes read, {}.{:02} %, in {time:.2?}; the \
         answer has {} bytes",
        read * 100 / size,
        read * 10_000 / size % 100,
        answer.len(),
    );
    Ok(())
}

/// Writes random numbers, which do not compress.
fn write(path: &Path) -> Result<()> {
    let mut state = 1u64;
    let mut number = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        f64::from_bits(0x3ff0_0000_0000_0000 | (state >> 12))
    };
    let columns = (0..COLUMNS).map(|column| {
        let values: Float64Array = std::iter::repeat_with(&mut number)
            .take(BATCH)
            .map(Some)
            .collect();
        (format!("c{column}"), Arc::new(values) as ArrayRef)
    });
    let batch = RecordBatch::try_from_iter(columns)?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::UNCOMPRESSED)
        .set_dictionary_enabled(false)
        .set_max_row_group_row_count(Some(4 * BATCH))
        .build();
    let mut writer = ArrowWriter::try_new(File::create(path)?, batch.schema(), Some(properties))?;
    for _ in 0..BATCHES {
        writer.write(&batch)?;
    }
    writer.close()?;
    Ok(())
}

/// Returns the bytes that this process has read with system calls, of files and of anything else.
fn read_so_far() -> Result<u64> {
    let counters = fs::read_to_string("/proc/self/io")?;
    let read = counters.lines().find_map(|line| line.strip_prefix("rchar: "));
    Ok(read.ok_or("no rchar in /proc/self/io")?.parse()?)
}
