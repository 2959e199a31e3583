//! The process of a server: what it gets, and what is left of it.

use std::sync::{Arc, Mutex};

use cellblock_interpreter::ToolServer;
use serde_json::json;

use crate::support::{good, options, refused, result, runs, scripted, until};

/// What the log was told.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_server_gets_little_of_our_environment_and_its_stderr_goes_to_the_log() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(move || writer.clone())
        .finish();
    // The test's runtime has this one thread.
    let _told = tracing::subscriber::set_default(subscriber);
    let scripted = scripted("environment", options());
    let environment = result(&scripted.server, "work", json!({})).await;
    let names: Vec<_> = environment
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let known = [
        "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "NOTES", "PATH", "TMPDIR", "TZ", "USER",
    ];
    assert!(names.contains(&"PATH") && names.contains(&"NOTES"), "{names:?}");
    // What starts the Python of some machines adds to it.
    let added = |name: &str| {
        ["PYENV", "_PYENV", "PWD", "SHLVL", "_"]
            .iter()
            .any(|begin| name.starts_with(begin))
    };
    assert!(
        names.iter().all(|name| known.contains(name) || added(name)),
        "{names:?}"
    );
    assert!(!names.iter().any(|name| name.starts_with("CARGO")), "{names:?}");
    // Cargo sets it for every test.
    assert!(std::env::var_os("CARGO_PKG_NAME").is_some());
    let told = || String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    until("the log was told", || told().contains("a line for the log")).await;
    let lines = told();
    let line = lines
        .lines()
        .find(|line| line.contains("a line for the log"))
        .unwrap();
    assert!(
        line.contains("cellblock::mcp_server") && line.contains("weather"),
        "{line}"
    );
    assert!(
        lines.contains("mcp_call_start") && lines.contains("mcp_call_success"),
        "{lines}"
    );
}

#[tokio::test]
async fn what_a_server_started_ends_with_it() {
    let scripted = scripted("children", options());
    good(&scripted.server).await;
    let pids = scripted.pids();
    assert_eq!(pids.len(), 2);
    assert!(pids.iter().all(|pid| runs(*pid)));
    drop(scripted);
    until("nothing is left", || pids.iter().all(|pid| !runs(*pid))).await;
}

#[tokio::test]
async fn a_connection_that_is_given_up_while_it_is_made_leaves_no_process() {
    let scripted = scripted("connect", options());
    let asked = tokio::time::timeout(std::time::Duration::from_secs(1), scripted.server.tools());
    assert!(asked.await.is_err());
    drop(scripted.server.clone());
    let pids = scripted.pids();
    until("nothing is left", || pids.iter().all(|pid| !runs(*pid))).await;
}

#[test]
fn a_runtime_that_ends_leaves_no_process() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let scripted = scripted("children", options());
    runtime.block_on(good(&scripted.server));
    let pids = scripted.pids();
    runtime.shutdown_background();
    let deadline = std::time::Instant::now() + crate::support::LONG;
    while pids.iter().any(|pid| runs(*pid)) {
        assert!(std::time::Instant::now() < deadline, "something is left");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[tokio::test]
async fn a_server_that_broke_the_protocol_leaves_no_process() {
    let scripted = scripted("endless", options());
    refused(&scripted.server).await;
    let pids = scripted.pids();
    until("nothing is left", || pids.iter().all(|pid| !runs(*pid))).await;
}
