//! Recording JSON rows of a tool and giving them back as a document: 1, 10 and 100 MB, in a folder.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::fmt::Write;
use std::hint::black_box;
use std::io::{Seek, Write as _};
use std::time::{Duration, Instant};

use bytes::Bytes;
use cellblock_artifact::Store;
use cellblock_interpreter::alias::{AliasStore, Bounds};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
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

fn alias(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let mut group = criterion.benchmark_group("alias");
    group
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1));
    for megabytes in [1, 10, 100] {
        let bytes = rows(megabytes * MEGABYTE);
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function(BenchmarkId::new("record_json", megabytes), |bencher| {
            bencher.iter_custom(|times| {
                let mut spent = Duration::ZERO;
                for _ in 0..times {
                    // Equal bytes are stored once, so each time begins with an empty store.
                    let (_folder, store) = fresh();
                    let started = Instant::now();
                    runtime
                        .block_on(store.record_json("rows", bytes.clone()))
                        .unwrap();
                    spent += started.elapsed();
                }
                spent
            });
        });
        group.bench_function(BenchmarkId::new("record_file", megabytes), |bencher| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&bytes).unwrap();
            file.rewind().unwrap();
            bencher.iter_custom(|times| {
                let mut spent = Duration::ZERO;
                for _ in 0..times {
                    let (_folder, store) = fresh();
                    let started = Instant::now();
                    runtime
                        .block_on(store.record_file("rows", file.try_clone().unwrap()))
                        .unwrap();
                    spent += started.elapsed();
                }
                spent
            });
        });
        let (_folder, store) = fresh();
        runtime
            .block_on(store.record_json("rows", bytes.clone()))
            .unwrap();
        group.bench_function(BenchmarkId::new("splice", megabytes), |bencher| {
            bencher.iter(|| {
                let mut splice = runtime.block_on(store.splice(&[("rows", "rows_1")])).unwrap();
                black_box(std::io::copy(&mut splice.content, &mut std::io::sink()).unwrap())
            });
        });
    }
    group.finish();
}

criterion_group!(benches, alias);
criterion_main!(benches);
