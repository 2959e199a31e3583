//! Large answers of connectors: the server's memory while they are fetched, and when their session is gone.

use std::thread;
use std::time::{Duration, Instant};

use cellblock_testkit::small_image;
use serde_json::{Value, json};

use crate::http;
use crate::server::{Server, ServerHome};

const MIB: usize = 1 << 20;
/// Time limit of a cell: a debug build reads some megabytes per second.
const LIMIT: Duration = Duration::from_secs(280);
/// Time after the end of the session in which memory has to be back.
const AFTER: Duration = Duration::from_secs(10);

/// Fetches so many answers of so many megabytes in a session, which is gone then; returns the most
/// memory of the server meanwhile.
fn fetch(server: &Server, threads: usize, megabytes: usize) -> usize {
    let post = |path: &str, body: Value| {
        let sent = http::send(server.address, &format!("POST {path}"), &[], &body.to_string());
        sent.within(LIMIT).answer().json()
    };
    let session = post("/v1/sessions", json!({"toolset": "notebook"}));
    let path = format!("/v1/sessions/{}", session["id"].as_str().unwrap());
    let code = format!(
        "from concurrent.futures import ThreadPoolExecutor\n\
         with ThreadPoolExecutor({threads}) as pool:\n    \
         print(min(pool.map(lambda n: len(large.rows(mb={megabytes}, n=n, form='rows')), range({threads}))))"
    );
    let body = json!({"code": code, "timeout": LIMIT.as_secs()});
    let most = thread::scope(|scope| {
        let cell = scope.spawn(|| post(&format!("{path}/cells"), body));
        let mut most = 0;
        while !cell.is_finished() {
            most = most.max(server.memory());
            thread::sleep(Duration::from_millis(20));
        }
        let cell = cell.join().unwrap();
        assert_eq!(cell["outcome"], "completed", "{cell:#}");
        most
    });
    let ended = http::send(server.address, &format!("DELETE {path}"), &[], "").answer();
    assert_eq!(ended.status, 200, "{}", ended.body);
    most
}

/// The server's memory once it is at most this, or after some time.
fn settled(server: &Server, at_most: usize) -> usize {
    let since = Instant::now();
    while server.memory() > at_most && since.elapsed() < AFTER {
        thread::sleep(Duration::from_millis(100));
    }
    server.memory()
}

fn served(place: &ServerHome, folder: &tempfile::TempDir, more: &str) -> Server {
    let program = include_str!("../../../../bench/python/large_rows.py");
    std::fs::write(folder.path().join("large_rows.py"), program).unwrap();
    let config = format!(
        "limits: {{memory: 3GiB}}\n\
         connectors: {{large: {{type: command, command: [python3, large_rows.py], max_result: 1GiB, \
         timeout: 280s}}}}\n{more}"
    );
    std::fs::write(folder.path().join("cellblock.yaml"), config).unwrap();
    let image = ("CELLBLOCK_IMAGE", small_image().unwrap());
    place.serve_in(folder.path(), &[], &[image])
}

#[test]
fn large_answers_are_read_within_a_number_of_bytes_and_leave_no_memory() {
    let (place, folder) = (ServerHome::new(), tempfile::tempdir().unwrap());
    // One of them at a time.
    let server = served(&place, &folder, "fetches: {max_in_flight: 8MiB}\n");
    fetch(&server, 1, 1);
    let before = settled(&server, 0);
    let one = fetch(&server, 1, 8).saturating_sub(before);
    settled(&server, before + 8 * MIB);
    let eight = fetch(&server, 8, 8).saturating_sub(before);
    // Without the limit they take several times as much.
    assert!(
        eight < 2 * one + 32 * MIB,
        "{eight} bytes for eight answers, {one} for one"
    );
    let after = settled(&server, before + 32 * MIB);
    assert!(after < before + 64 * MIB, "{after} bytes after, {before} before");
}
