//! The suite itself, a program of npm, run against the server.

use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use axum::Router;
use cellblock_artifact::Store;
use cellblock_interpreter::Interpreter;
use cellblock_interpreter::hosting::Owner;
use cellblock_interpreter::session::SessionOptions;
use cellblock_mcp::fixtures::Fixtures;
use cellblock_mcp::http::{HttpOptions, behind};
use cellblock_mcp::{LazyInterpreter, Options, Server};
use cellblock_testkit::{SuiteCounts, judged, require};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use crate::baseline;

/// The server's tasks live here, so it must outlive each test.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
static PORT: OnceCell<u16> = OnceCell::const_new();

/// Longer than the suite takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(5);
/// Scenarios that each revision asks for, and those of extensions that the suite runs with them.
const SCENARIOS: [(&str, usize); 2] = [("2025-11-25", 33), ("2026-07-28", 50)];
/// Of the extension of tasks, what the server does not do: its calls ask for nothing, none has to
/// be a task, and none fails but as a tool.
const TASKS_WITHOUT: [&str; 7] = [
    "tasks-dispatch-and-envelope: tasks-result-type-complete-on-non-task-responses",
    "tasks-lifecycle: sep-2663-tasks-get-status-failed",
    "tasks-mrtr-composition: sep-2663-mrtr-synchronous-before-task-creation",
    "tasks-mrtr-input: sep-2663-tasks-get-status-input-required",
    "tasks-mrtr-input: tasks-mrtr-partial-fulfillment",
    "tasks-mrtr-input: tasks-mrtr-tasks-update-resumes",
    "tasks-required-task-error: sep-2663-server-returns-missing-capability-when-required",
];

/// Serves at a port of its own, which is given.
async fn serve() -> u16 {
    let interpreter = Interpreter::builder()
        .home(cellblock_testkit::home().unwrap())
        .store(Store::local(env!("CARGO_TARGET_TMPDIR").to_owned() + "/conformance").unwrap())
        .build()
        .await
        .unwrap();
    // The suite gives a job of two seconds ten, in which everything would have to be imported for
    // the first time.
    let first = interpreter.session(SessionOptions::default());
    first.execute("1").await.unwrap();
    first.close().await.unwrap();
    let engine = LazyInterpreter::ready(interpreter);
    let options = Options {
        // The suite's jobs take a second or two, and have to be tasks by then; each makes a session.
        task_after: Duration::from_millis(100),
        max_sessions_per_key: 256,
        ..Options::default()
    };
    let server = Server::new(engine, options);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let options = HttpOptions {
        allowed_origins: ["localhost", "127.0.0.1"]
            .map(|host| format!("http://{host}:{port}"))
            .into(),
        ..HttpOptions::default()
    };
    let service = behind(
        &server,
        |_| Some(Owner::new("the suite")),
        options,
        Fixtures::over,
    );
    let router = Router::new().route_service("/mcp", service);
    tokio::spawn(async move { axum::serve(listener, router).await });
    port
}

/// Runs what a revision asks for; what came of it is written into the folder as well.
async fn judge(revision: &str, results: &Path) -> Output {
    let port = PORT.get_or_init(serve).await;
    let mut command = Command::new("node");
    command
        .args([
            "node_modules/@modelcontextprotocol/conformance/dist/index.js",
            "server",
        ])
        .args(["--url", &format!("http://127.0.0.1:{port}/mcp")])
        .args(["--requirements", revision, "--expected-failures"])
        .arg(baseline::file(revision))
        .arg("--output-dir")
        .arg(results)
        .current_dir(cellblock_testkit::workspace_root().join("tests/clients/mcp/node"))
        .stdin(Stdio::null())
        .kill_on_drop(true);
    timeout(PATIENCE, command.output()).await.unwrap().unwrap()
}

/// Fails with what the suite printed, if something failed that was not expected to, or did not that was.
fn conforms(revision: &str) -> tempfile::TempDir {
    let results = tempfile::tempdir().unwrap();
    let output = RUNTIME.block_on(judge(revision, results.path()));
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}\n{errors}");
    assert!(printed.contains("Baseline check passed"), "{printed}\n{errors}");
    let (_, summary) = printed.split_once("=== SUMMARY ===").unwrap();
    let (scored, _) = summary.split_once("Not scored").unwrap_or((summary, ""));
    let of = |mark: char| scored.lines().filter(|line| line.starts_with(mark)).count();
    let (passed, failed) = (of('✓'), of('✗'));
    assert!(SCENARIOS.contains(&(revision, passed + failed)), "{summary}");
    // Those that fail are the expected ones, as the baseline says; the table has them with their reasons.
    let counts = SuiteCounts {
        passed: passed as u64,
        failed: 0,
        skipped: failed as u64,
    };
    judged(&format!("mcp-{revision}"), counts);
    results
}

/// The checks that failed of scenarios whose names begin so.
fn failed(results: &Path, begin: &str) -> Vec<String> {
    let mut failed = Vec::new();
    for scenario in results.read_dir().unwrap() {
        let scenario = scenario.unwrap();
        let folder = scenario.file_name().into_string().unwrap();
        let Some(name) = folder
            .strip_prefix("server-")
            .filter(|name| name.starts_with(begin))
        else {
            continue;
        };
        // The time of the run follows the name.
        let (name, _) = name.split_once("-20").unwrap();
        let checks = std::fs::read(scenario.path().join("checks.json")).unwrap();
        let checks: Vec<Value> = serde_json::from_slice(&checks).unwrap();
        let unmet = checks.iter().filter(|check| check["status"] == "FAILURE");
        failed.extend(unmet.map(|check| format!("{name}: {}", check["id"].as_str().unwrap())));
    }
    failed.sort();
    failed
}

#[test]
fn the_server_conforms_to_2025_11_25() {
    require!(McpNode);
    conforms("2025-11-25");
}

#[test]
fn the_server_conforms_to_2026_07_28_and_its_long_calls_to_the_extension_of_tasks() {
    require!(McpNode);
    let results = conforms("2026-07-28");
    assert_eq!(failed(results.path(), "tasks-"), TASKS_WITHOUT);
}
