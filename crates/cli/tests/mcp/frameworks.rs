//! Frameworks for agents, with a model that has a script: each has to show its model a file, a
//! table, a chart and an exception, and to keep the session from call to call.

use std::process::Command;

use cellblock_testkit::require;

use crate::place::{GatewayProcess, folder, over_http, passes, program};

/// Runs a framework's tests with the packages of an environment.
fn go_through(environment: &str, test: &str) {
    let served = GatewayProcess::shared();
    let python = folder("frameworks").join(environment).join(".venv/bin/python");
    let mut suite = program(python, "frameworks");
    suite.args(["-W", "ignore", "-m", "unittest", test]);
    run(&mut suite, &served);
}

fn run(suite: &mut Command, served: &GatewayProcess) {
    over_http(suite, served);
    // Nothing is asked of the network, nor told to it.
    suite.env("LITELLM_LOCAL_MODEL_COST_MAP", "True");
    suite.env("MASTRA_TELEMETRY_DISABLED", "1");
    suite.env("MCP_USE_ANONYMIZED_TELEMETRY", "false");
    passes(suite);
}

#[test]
fn langchain_and_deep_agents_show_everything_and_keep_the_session() {
    require!(McpFrameworks1);
    go_through("mcp1", "test_langchain");
}

#[test]
fn semantic_kernel_shows_everything_and_keeps_the_session() {
    require!(McpFrameworks1);
    go_through("mcp1", "test_semantic_kernel");
}

#[test]
fn autogen_shows_everything_and_keeps_the_session() {
    require!(McpFrameworks1);
    go_through("mcp1", "test_autogen");
}

#[test]
fn mcp_use_shows_everything_and_keeps_the_session() {
    require!(McpFrameworks1);
    go_through("mcp1", "test_mcp_use");
}

#[test]
fn agent_framework_shows_everything_and_keeps_the_session() {
    require!(McpFrameworks2);
    go_through("mcp2", "test_agent_framework");
}

#[test]
fn adk_shows_everything_and_keeps_the_session() {
    require!(McpFrameworks2);
    go_through("mcp2", "test_adk");
}

#[test]
fn strands_shows_everything_and_keeps_the_session() {
    require!(McpFrameworks2);
    go_through("mcp2", "test_strands");
}

#[test]
fn codex_calls_the_tools_shows_everything_and_keeps_the_session() {
    require!(McpFrameworks2);
    require!(McpNode);
    go_through("mcp2", "test_codex");
}

#[test]
fn mastra_shows_everything_and_keeps_the_session() {
    require!(McpNode);
    let served = GatewayProcess::shared();
    let mut suite = program("node", "node");
    suite.args(["--test", "--test-reporter=spec", "mastra.test.js"]);
    run(&mut suite, &served);
}
