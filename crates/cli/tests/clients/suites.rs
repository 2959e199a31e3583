//! Each client's own tests, against one gateway.

use std::process::Command;

use cellblock_testkit::{require, workspace_root};

use crate::process::{folder, passes, python};
use crate::world::World;

/// Keeps clients from reporting to their makers, and from fetching lists of prices when they start.
const QUIET: [(&str, &str); 4] = [
    ("AGNO_TELEMETRY", "false"),
    ("HAYSTACK_TELEMETRY_ENABLED", "False"),
    ("LITELLM_LOCAL_MODEL_COST_MAP", "True"),
    ("MASTRA_TELEMETRY_DISABLED", "1"),
];

/// Runs a Python module of tests with the packages of `tests/clients/python`.
fn python_suite(world: &World, module: &str) {
    python_suite_with("python", world, module);
}

/// Runs a Python module of tests with the packages that a folder pins.
fn python_suite_with(pins: &str, world: &World, module: &str) {
    let mut command = Command::new(python(pins));
    command
        .args(["-m", "unittest", module])
        .envs(world.environment())
        .envs(QUIET)
        // The folder is the repository's; nothing is to be left there.
        .env("PYTHONDONTWRITEBYTECODE", "1");
    passes(&mut command, &folder("python")).unwrap();
}

/// Runs a file of Node's tests.
fn node_suite(world: &World, file: &str) {
    let mut command = Command::new("node");
    command
        .args(["--test", "--test-reporter=spec", file])
        .envs(world.environment())
        .envs(QUIET);
    passes(&mut command, &folder("node")).unwrap();
}

#[test]
fn openai_python_gets_answers_charts_and_files() {
    require!(NodeClients);
    require!(PythonClients);
    python_suite(&World::shared(), "test_openai");
}

#[test]
fn openai_python_goes_on_from_what_is_kept_and_is_rejected_what_is_wrong() {
    require!(NodeClients);
    require!(PythonClients);
    python_suite(&World::shared(), "test_openai_states");
}

#[test]
fn openai_python_chats_and_keeps_conversations() {
    require!(NodeClients);
    require!(PythonClients);
    python_suite(&World::shared(), "test_chat");
}

#[test]
fn openai_agents_run_with_the_interpreter_as_their_tool() {
    require!(NodeClients);
    require!(PythonClients);
    python_suite(&World::shared(), "test_agents");
}

#[test]
fn clients_of_python_run_commands_and_serve_their_own_tools() {
    require!(NodeClients);
    require!(PythonClients);
    python_suite(&World::shared(), "test_shell");
}

#[test]
fn clients_of_node_run_commands_and_serve_their_own_tools() {
    require!(NodeClients);
    node_suite(&World::shared(), "shell.test.js");
}

#[test]
fn models_of_python_clients_repair_their_mistakes() {
    require!(NodeClients);
    require!(PythonClients);
    python_suite(&World::shared(), "test_repairs");
}

#[test]
fn models_of_node_clients_repair_their_mistakes() {
    require!(NodeClients);
    node_suite(&World::shared(), "repairs.test.js");
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
fn the_client_for_javascript_has_everything_that_a_server_has() {
    require!(NodeClients);
    require!(JavascriptClient);
    let folder = workspace_root().join("javascript");
    passes(
        Command::new("node").args(["node_modules/typescript/bin/tsc"]),
        &folder,
    )
    .unwrap();
    let world = World::shared();
    let mut command = Command::new("node");
    command
        .args(["--test", "--test-reporter=spec"])
        .args(["test/unit.test.js", "test/server.test.js"])
        .envs(world.environment())
        .envs(QUIET);
    passes(&mut command, &folder).unwrap();
}

#[test]
fn the_ai_sdk_and_mastra_find_the_variables_of_the_turn_before() {
    require!(NodeClients);
    node_suite(&World::shared(), "conversations.test.js");
}

#[test]
fn pydantic_ai_finds_the_variables_of_the_turn_before() {
    require!(NodeClients);
    require!(PythonClients);
    python_suite(&World::shared(), "test_pydantic_ai");
}

#[test]
fn agno_finds_the_variables_of_the_turn_before() {
    require!(NodeClients);
    require!(PythonClients);
    python_suite(&World::shared(), "test_agno");
}

#[test]
fn llama_index_finds_the_variables_of_the_turn_before() {
    require!(NodeClients);
    require!(Openai2Clients);
    python_suite_with("python/openai2", &World::shared(), "test_llama_index");
}

#[test]
fn haystack_finds_the_variables_of_the_turn_before() {
    require!(NodeClients);
    require!(Openai2Clients);
    python_suite_with("python/openai2", &World::shared(), "test_haystack");
}

#[test]
fn instructor_gets_typed_answers_over_chat_completions() {
    require!(NodeClients);
    require!(Openai2Clients);
    python_suite_with("python/openai2", &World::shared(), "test_instructor");
}

#[test]
fn litellm_gets_completions_whose_code_has_run() {
    require!(NodeClients);
    require!(Openai2Clients);
    python_suite_with("python/openai2", &World::shared(), "test_litellm");
}

#[test]
fn frameworks_of_node_speak_chat_completions_to_the_gateway() {
    require!(NodeClients);
    node_suite(&World::shared(), "chat.test.js");
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
