//! E2B's own clients.

use cellblock_dialects::{BuildOptions, E2bOptions};
use cellblock_testkit::require;

use super::shelf::MemoryShelf;
use super::{E2bFixture, KEY};
use crate::support::{block_on, run};

const PYTHON: &str = ".venv/bin/python";

/// Runs a program that finds the server by the addresses of E2B's API and sandboxes.
fn passes_by_address(judge: &str, program: &str, arguments: &[&str]) {
    let shelf = MemoryShelf::default();
    let world = block_on(E2bFixture::building(&shelf, BuildOptions::default()));
    let url = world.url("");
    let variables = [
        ("E2B_API_URL", url.as_str()),
        ("E2B_SANDBOX_URL", &url),
        ("E2B_API_KEY", KEY),
    ];
    block_on(run(judge, "dialects/e2b", program, arguments, &variables));
}

#[test]
fn the_clients_of_python_work_unchanged() {
    require!(E2bPython);
    passes_by_address("e2b-python", PYTHON, &["-m", "unittest", "test_e2b"]);
}

#[test]
fn smolagents_runs_an_agents_code() {
    require!(E2bPython);
    passes_by_address("smolagents", PYTHON, &["-m", "unittest", "test_smolagents"]);
}

#[test]
fn the_client_of_javascript_works_unchanged() {
    require!(E2bNode);
    let arguments = ["--test", "--test-reporter=tap", "e2b.test.js"];
    passes_by_address("e2b-javascript", "node", &arguments);
}

#[test]
fn computesdk_finds_it_by_e2bs_variables() {
    require!(E2bNode);
    let arguments = ["--test", "--test-reporter=tap", "computesdk.test.js"];
    passes_by_address("computesdk", "node", &arguments);
}

#[test]
fn the_client_of_python_works_in_debug_mode_with_one_variable() {
    require!(E2bPython);
    let options = E2bOptions {
        debug: true,
        ..E2bOptions::default()
    };
    let world = block_on(E2bFixture::with(options));
    // No web page gets there.
    for (name, value) in [("origin", "http://evil.example"), ("host", "evil.example:49999")] {
        let asked = world
            .http
            .post("http://127.0.0.1:49999/execute")
            .header(name, value)
            .body("{}");
        let answer = block_on(asked.send()).unwrap();
        assert_eq!(answer.status(), 403, "{name}");
    }
    let arguments = ["-m", "unittest", "test_debug"];
    let variables = [("E2B_DEBUG", "true")];
    block_on(run("e2b-debug", "dialects/e2b", PYTHON, &arguments, &variables));
}
