//! Recording JSON rows of a tool and giving them back as a document: 1, 10 and 100 MB, in a folder.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measures")]
#![expect(clippy::cast_precision_loss, reason = "sizes are far below 2^52 bytes")]

use std::fmt::Write;
use std::hint::black_box;
use std::io::{Seek, Write as _};
use std::time::{Duration, Instant};

use bytes::Bytes;
use cellblock_artifact::Store;
use cellblock_interpreter::alias::{AliasStore, Bounds};
use tempfile::TempDir;
use tokio::runtime::Runtime;

const MEGABYTE: usize = 1_000_000;

/// Rows as a market's API returns them.
fn rows(size: usize) -> Bytes {
    let mut text = String::with_capacity(size + 200);
    text.push('[');
    for n in 0.. {
        if text.len() >= size {
            break;
        }
        let comma = if n == 0 { "" } else { "," };
        let price = f64::from(n % 100_000) * 1.37;
        let _ = write!(
            text,
            r#"{comma}{{"time":"2024-01-01T00:{:02}:{:02}Z","venue":"exchange-{}","price":{price:.2},"volume":{n},"note":null}}"#,
            n / 60 % 60,
            n % 60,
            n % 7,
        );
    }
    text.push(']');
    text.into()
}

fn fresh() -> (TempDir, AliasStore) {
    let folder = TempDir::new().unwrap();
    let store = Store::local(folder.path()).unwrap();
    (folder, AliasStore::new(store, "bench", Bounds::default()))
}

/// Prints the median of ten runs, each of which measures itself.
fn report(name: &str, bytes: &Bytes, run: impl FnMut() -> Duration) {
    let mut times: Vec<_> = std::iter::repeat_with(run).take(11).collect();
    // The first run warms up.
    times.remove(0);
    times.sort_unstable();
    let median = times[times.len() / 2];
    let megabytes = bytes.len() / MEGABYTE;
    let rate = bytes.len() as f64 / MEGABYTE as f64 / median.as_secs_f64();
    println!("{name:<12} {megabytes:>4} MB  {median:>10.2?}  {rate:>8.0} MB/s");
}

fn main() {
    let runtime = Runtime::new().unwrap();
    for megabytes in [1, 10, 100] {
        let bytes = rows(megabytes * MEGABYTE);
        report("record_json", &bytes, || {
            // Equal bytes are stored once, so each run begins with an empty store.
            let (_folder, store) = fresh();
            let started = Instant::now();
            runtime
                .block_on(store.record_json("rows", bytes.clone()))
                .unwrap();
            started.elapsed()
        });
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        report("record_file", &bytes, || {
            let mut file = file.try_clone().unwrap();
            file.rewind().unwrap();
            let (_folder, store) = fresh();
            let started = Instant::now();
            runtime.block_on(store.record_file("rows", file)).unwrap();
            started.elapsed()
        });
        let (_folder, store) = fresh();
        runtime
            .block_on(store.record_json("rows", bytes.clone()))
            .unwrap();
        report("splice", &bytes, || {
            let started = Instant::now();
            let mut splice = runtime.block_on(store.splice(&[("rows", "rows_1")])).unwrap();
            black_box(std::io::copy(&mut splice.content, &mut std::io::sink()).unwrap());
            started.elapsed()
        });
    }
}
