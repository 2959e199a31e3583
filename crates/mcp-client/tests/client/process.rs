//! The process of a server: its environment, and its complete end.

use std::sync::Arc;

use cellblock_agent::ToolServer;
use cellblock_testkit::wait::block_until;
use parking_lot::Mutex;
use serde_json::json;

use crate::support::{good, options, refused, result, runs, scripted, until};

/// The log of all tests: a thread's own log would miss events that another thread reached first.
#[derive(Clone, Default)]
struct TestLog(Arc<Mutex<Vec<u8>>>);

impl TestLog {
    fn begin() -> Self {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .with_ansi(false)
            .finish();
        tracing::subscriber::set_global_default(subscriber).unwrap();
        log
    }

    /// The first line with these words.
    fn line(&self, words: &[&str]) -> Option<String> {
        let text = String::from_utf8(self.0.lock().clone()).unwrap();
        let mut lines = text.lines();
        let line = lines.find(|line| words.iter().all(|word| line.contains(word)))?;
        Some(line.to_owned())
    }
}

impl std::io::Write for TestLog {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_server_gets_little_of_our_environment_and_its_stderr_goes_to_the_log() {
    let log = TestLog::begin();
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
    let line = ["a line for the log", "cellblock::mcp_server", "weather"];
    until("the log was told", || log.line(&line).is_some()).await;
    for event in ["mcp_call_start", "mcp_call_success"] {
        assert!(
            log.line(&[event, "cellblock::mcp_call", "weather"]).is_some(),
            "{event}"
        );
    }
}

#[tokio::test]
async fn processes_that_a_server_started_end_with_it() {
    let scripted = scripted("children", options());
    good(&scripted.server).await;
    let pids = scripted.pids();
    assert_eq!(pids.len(), 2);
    assert!(pids.iter().all(|pid| runs(*pid)));
    drop(scripted);
    until("nothing is left", || pids.iter().all(|pid| !runs(*pid))).await;
}

#[tokio::test]
async fn a_canceled_connection_attempt_leaves_no_process() {
    let scripted = scripted("connect", options());
    let asked = tokio::time::timeout(std::time::Duration::from_secs(1), scripted.server.tools());
    assert!(asked.await.is_err());
    drop(scripted.server.clone());
    let pids = scripted.pids();
    until("nothing is left", || pids.iter().all(|pid| !runs(*pid))).await;
}

#[test]
fn the_end_of_the_runtime_leaves_no_process() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let scripted = scripted("children", options());
    runtime.block_on(good(&scripted.server));
    let pids = scripted.pids();
    runtime.shutdown_background();
    block_until("nothing is left", || !pids.iter().any(|pid| runs(*pid)));
}

#[tokio::test]
async fn a_server_that_broke_the_protocol_leaves_no_process() {
    let scripted = scripted("endless", options());
    refused(&scripted.server).await;
    let pids = scripted.pids();
    until("nothing is left", || pids.iter().all(|pid| !runs(*pid))).await;
}
