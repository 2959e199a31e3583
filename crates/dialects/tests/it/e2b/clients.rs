//! E2B's own clients.

use cellblock_dialects::E2bOptions;
use cellblock_testkit::require;

use super::{KEY, World};
use crate::support::{block_on, run};

/// Runs a program of E2B's clients with variables that lead it to a server.
fn passes(program: &str, arguments: &[&str], variables: &[(&str, &str)]) {
    // The folder is the repository's; nothing is to be left there.
    let variables = [variables, &[("PYTHONDONTWRITEBYTECODE", "1")]].concat();
    block_on(run("dialects/e2b", program, arguments, &variables));
}

/// Runs a program that finds the server by the addresses of E2B's API and sandboxes.
fn passes_by_address(program: &str, arguments: &[&str]) {
    let world = block_on(World::start());
    let url = world.url("");
    let variables = [
        ("E2B_API_URL", url.as_str()),
        ("E2B_SANDBOX_URL", &url),
        ("E2B_API_KEY", KEY),
    ];
    passes(program, arguments, &variables);
}

#[test]
fn the_clients_of_python_work_unchanged() {
    require!(E2bPython);
    passes_by_address(".venv/bin/python", &["-m", "unittest", "test_e2b"]);
}

#[test]
fn smolagents_runs_an_agents_code() {
    require!(E2bPython);
    passes_by_address(".venv/bin/python", &["-m", "unittest", "test_smolagents"]);
}

#[test]
fn the_client_of_javascript_works_unchanged() {
    require!(E2bNode);
    passes_by_address("node", &["--test", "e2b.test.js", "computesdk.test.js"]);
}

#[test]
fn the_client_of_python_works_in_debug_mode_with_one_variable() {
    require!(E2bPython);
    let options = E2bOptions {
        debug: true,
        ..E2bOptions::default()
    };
    let world = block_on(World::with(options));
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
    passes(".venv/bin/python", &arguments, &[("E2B_DEBUG", "true")]);
}
