//! The agent of `docs/guides/data-agent.md`, with the server of tools, the configuration and the
//! script of `examples/agent`.

use std::path::PathBuf;

use cellblock_testkit::{require, workspace_root};
use serde_json::{Value, json};

use crate::server::{Server, ServerHome};

/// Starts the example, with the Python that has its server's package.
fn start(place: &ServerHome, environment: &[(&str, &str)]) -> Server {
    let python = workspace_root().join("tests/clients/mcp/python/.venv/bin");
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(python).chain(std::env::split_paths(&paths).collect::<Vec<PathBuf>>());
    let path = std::env::join_paths(paths).unwrap();
    // Its code draws charts.
    let mut all = vec![("PATH", path.to_str().unwrap()), ("CELLBLOCK_IMAGE", "default")];
    all.extend(environment);
    place.serve_in(&workspace_root().join("examples/agent"), &[], &all)
}

/// The request that the guide shows.
fn request() -> String {
    let page = std::fs::read_to_string(workspace_root().join("docs/guides/data-agent.md")).unwrap();
    let (_, body) = page.split_once("-d '").unwrap();
    body.split_once('\'').unwrap().0.to_owned()
}

fn ask(server: &Server) -> Value {
    let answer = server.post("/v1/responses", &[], &request());
    assert_eq!(answer.status, 200, "{}\n{}", answer.body, server.log());
    answer.json()
}

/// Each item's type and status, and what was called.
fn told(response: &Value) -> Vec<(&str, &str, &str)> {
    let items = response["output"].as_array().unwrap().iter();
    items
        .map(|item| {
            let word = |key: &str| item[key].as_str().unwrap_or_default();
            (word("type"), word("status"), word("name"))
        })
        .collect()
}

/// Events of calls in the log, in their order.
fn calls(server: &Server) -> Vec<String> {
    let log = server.log();
    let lines = log
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let events = lines.filter_map(|line| line["event"].as_str().map(str::to_owned));
    events
        .filter(|event| event.starts_with("mcp_call") || event.starts_with("python_call"))
        .collect()
}

#[test]
fn the_guides_agent_fetches_derives_repairs_and_answers() {
    require!(McpPython);
    let place = ServerHome::new();
    let server = start(&place, &[]);
    let response = ask(&server);
    assert_eq!(
        told(&response),
        [
            ("message", "completed", ""),
            ("mcp_call", "completed", "get_reserves"),
            ("mcp_call", "completed", "get_price_history"),
            ("code_interpreter_call", "failed", ""),
            ("code_interpreter_call", "completed", ""),
            ("message", "completed", ""),
        ],
        "{response}"
    );
    let report = &response["cellblock"];
    assert_eq!(
        (&report["outcome"], &report["gaps"]),
        (&json!("answer"), &json!([]))
    );
    let aliases = json!(["get_reserves_1", "get_price_history_1", "code_interpreter_1"]);
    assert_eq!(report["dataset"]["aliases"], aliases);
    let dataset = server.get(report["dataset"]["url"].as_str().unwrap(), &[]).json();
    assert_eq!(
        dataset["aliases"]["get_price_history_1"]["prices"]
            .as_array()
            .unwrap()
            .len(),
        60
    );
    assert_eq!(dataset["result"]["days"], 59);
    let picture = &report["artifacts"][0];
    assert_eq!(
        (&picture["kind"], &picture["title"]),
        (&json!("image"), &json!("Flow of alpha"))
    );
    let url = picture["url"].as_str().unwrap();
    assert_eq!(
        url,
        format!("/v1/artifacts/{}.png", picture["sha256"].as_str().unwrap())
    );
    assert_eq!(server.get(url, &[("Range", "bytes=1-3")]).body, "PNG");
    let mut fetched = calls(&server);
    let derived = fetched.split_off(4);
    fetched.sort();
    assert_eq!(
        fetched,
        [
            "mcp_call_start",
            "mcp_call_start",
            "mcp_call_success",
            "mcp_call_success"
        ]
    );
    assert_eq!(
        derived,
        [
            "python_call_start",
            "python_call_failure",
            "python_call_start",
            "python_call_success"
        ]
    );
}

#[test]
fn the_guides_agent_reports_gaps_when_its_steps_are_used_up() {
    require!(McpPython);
    let place = ServerHome::new();
    let steps = [
        ("CELLBLOCK_SERVE__TURN__MAX_STEPS", "2"),
        ("CELLBLOCK_SERVE__TURN__CHART_STEPS", "0"),
    ];
    let server = start(&place, &steps);
    let response = ask(&server);
    assert_eq!(
        response["incomplete_details"]["reason"], "max_steps",
        "{response}"
    );
    let report = &response["cellblock"];
    assert_eq!(
        (&report["outcome"], &report["stop_reason"]),
        (&json!("best_effort"), &json!("bounded_runtime_budget"))
    );
    let gaps: Vec<_> = report["gaps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|gap| gap["code"].as_str().unwrap())
        .collect();
    assert_eq!(gaps, ["chart_missing", "step_budget_exhausted"]);
    let last = response["output"].as_array().unwrap().last().unwrap();
    let text = last["content"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("get_reserves_1") && text.contains("save_figure"),
        "{text}"
    );
}
