//! The protocol's own clients for Python and TypeScript, in both revisions.

use std::process::Command;

use cellblock_testkit::require;

use crate::place::{GatewayProcess, folder, over_http, over_stdio, passes, program};

fn python() -> Command {
    let mut suite = program(folder("python").join(".venv/bin/python"), "python");
    suite.args(["-m", "unittest", "test_client"]);
    suite
}

fn node(file: &str) -> Command {
    let mut suite = program("node", "node");
    suite.args(["--test", "--test-reporter=spec", file]);
    suite
}

#[test]
fn the_python_client_works_over_stdio() {
    require!(McpPython);
    let mut suite = python();
    over_stdio(&mut suite);
    passes(&mut suite);
}

#[test]
fn the_python_client_works_over_http() {
    require!(McpPython);
    let served = GatewayProcess::shared();
    let mut suite = python();
    suite.arg("test_keys");
    over_http(&mut suite, &served);
    passes(&mut suite);
}

#[test]
fn the_typescript_client_works_over_stdio() {
    require!(McpNode);
    let mut suite = node("client.test.js");
    over_stdio(&mut suite);
    passes(&mut suite);
}

#[test]
fn the_typescript_client_works_over_http() {
    require!(McpNode);
    let served = GatewayProcess::shared();
    let mut suite = node("client.test.js");
    suite.arg("keys.test.js");
    over_http(&mut suite, &served);
    passes(&mut suite);
}

#[test]
fn the_older_typescript_client_works_over_stdio() {
    require!(McpNode);
    let mut suite = node("sdk.test.js");
    over_stdio(&mut suite);
    passes(&mut suite);
}

#[test]
fn the_older_typescript_client_works_over_http() {
    require!(McpNode);
    let served = GatewayProcess::shared();
    let mut suite = node("sdk.test.js");
    over_http(&mut suite, &served);
    passes(&mut suite);
}
