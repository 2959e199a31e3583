//! Each client's own tests, against one gateway.

use std::process::Command;

use cellblock_testkit::require;

use crate::process::{folder, passes, python};
use crate::world::World;

/// Runs a Python module of tests.
fn python_suite(world: &World, module: &str) {
    let mut command = Command::new(python());
    command
        .args(["-m", "unittest", module])
        .envs(world.environment())
        // The folder is the repository's; nothing is to be left there.
        .env("PYTHONDONTWRITEBYTECODE", "1");
    passes(&mut command, &folder("python")).unwrap();
}

/// Runs a file of Node's tests.
fn node_suite(world: &World, file: &str) {
    let mut command = Command::new("node");
    command
        .args(["--test", "--test-reporter=spec", file])
        .envs(world.environment());
    passes(&mut command, &folder("node")).unwrap();
}

#[test]
fn openai_python_gets_answers_charts_and_files() {
    require!(NodeClients);
    require!(PythonClients);
    python_suite(&World::shared(), "test_openai");
}

#[test]
fn openai_python_goes_on_from_what_is_kept_and_is_refused_what_is_wrong() {
    require!(NodeClients);
    require!(PythonClients);
    python_suite(&World::shared(), "test_openai_states");
}

#[test]
fn openai_agents_run_with_the_interpreter_as_their_tool() {
    require!(NodeClients);
    require!(PythonClients);
    python_suite(&World::shared(), "test_agents");
}

#[test]
fn langchain_speaks_to_the_gateway_as_to_openai() {
    require!(NodeClients);
    require!(PythonClients);
    python_suite(&World::shared(), "test_langchain");
}

#[test]
fn clients_of_python_fetch_with_a_servers_tools_and_derive() {
    require!(NodeClients);
    require!(PythonClients);
    let world = World::shared();
    python_suite(&world, "test_market");
    python_suite(&world, "test_market_frameworks");
}

#[test]
fn clients_of_node_fetch_with_a_servers_tools_and_derive() {
    require!(NodeClients);
    node_suite(&World::shared(), "market.test.js");
}

#[test]
fn openai_node_knows_every_event_of_the_streams() {
    require!(NodeClients);
    node_suite(&World::shared(), "openai.test.js");
}

#[test]
fn the_vercel_ai_sdk_finds_every_event_and_item_in_its_schemas() {
    require!(NodeClients);
    node_suite(&World::shared(), "ai.test.js");
}

#[test]
fn code_that_takes_too_long_is_incomplete_for_every_client() {
    require!(NodeClients);
    require!(PythonClients);
    let world = World::start("limits: {cell_timeout: 2s}").unwrap();
    python_suite(&world, "test_deadlines");
    node_suite(&world, "deadlines.test.js");
    world.stop().unwrap();
}
