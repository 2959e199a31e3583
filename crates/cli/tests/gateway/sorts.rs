//! Sorted tables: how many are sorted at the same time, and what memory that takes.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use cellblock_testkit::small_image;
use serde_json::json;

use crate::server::ServerHome;

/// Columns of the table, each of which is sorted in both directions at the same time.
const COLUMNS: usize = 5;
const ROWS: usize = 1_000_000;

#[test]
fn many_sorts_at_once_take_the_memory_of_as_many_as_there_are_processors() {
    let place = ServerHome::new();
    let image = ("CELLBLOCK_IMAGE", small_image().unwrap());
    let server = place.serve_with(&[], &[image]);
    let post = |path: &str, body| server.post(path, &[], &format!("{body}")).json();
    let session = post("/v1/sessions", json!({}));
    let code = format!(
        "import numpy as np, pandas as pd\n\
         pd.DataFrame(np.random.default_rng(1).random(({ROWS}, {COLUMNS})), columns=list('abcde'))"
    );
    let path = format!("/v1/sessions/{}/cells", session["id"].as_str().unwrap());
    let cell = post(&path, json!({"code": code, "timeout": 300}));
    let table = cell["artifacts"][0]["sha256"].as_str();
    let table = table.unwrap_or_else(|| panic!("{cell:#}"));
    let before = server.memory();
    let (peak, is_done) = (AtomicUsize::new(0), AtomicBool::new(false));
    let running = AtomicUsize::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                peak.fetch_max(server.memory(), Ordering::Relaxed);
                let now = server.metric("cellblock_conversions_running", &[]);
                running.fetch_max(usize::try_from(now).unwrap(), Ordering::Relaxed);
                thread::sleep(Duration::from_millis(5));
            }
        });
        let sorts: Vec<_> = (0..2 * COLUMNS)
            .map(|sort| {
                let (column, descending) = (sort / 2, sort % 2 == 1);
                let path =
                    format!("/v1/artifacts/{table}/rows?limit=1&sort={column}&descending={descending}");
                let server = &server;
                scope.spawn(move || server.get(&path, &[]))
            })
            .collect();
        for sort in sorts {
            let rows = sort.join().unwrap();
            assert_eq!(rows.status, 200, "{}", rows.body);
        }
        is_done.store(true, Ordering::Relaxed);
    });
    let places = thread::available_parallelism().unwrap().get();
    let running = running.into_inner();
    assert!((1..=places).contains(&running), "{running} of {places}");
    // 12 bytes a row are sorted, and 4 stay; the rest is a batch, pages of the file, and the
    // reader's own. The allocator may still hold the freed memory of two sorts: the server returns
    // memory half a second after it was freed.
    let grown = peak.into_inner().saturating_sub(before);
    let most = (places + 2) * ROWS * 16 + (48 << 20);
    assert!(
        grown < most,
        "{grown} bytes more than {before}; expected less than {most}"
    );
}
