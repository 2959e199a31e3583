//! The Inspector's command line: what it prints of a server, and what it finds wrong with its schemas.

use std::process::Command;

use cellblock_testkit::require;
use serde_json::Value;

use crate::place::{GatewayProcess, command, passes, program};

/// The Inspector before a server that it starts.
fn over_stdio() -> Command {
    let mut inspector = inspector();
    // It hands a server none of its own environment, and there need not be an image in any other home.
    let home = format!("CELLBLOCK_HOME={}", cellblock_testkit::home().unwrap().display());
    inspector.args(["env", &home]).args(command());
    inspector
}

/// The Inspector before a server that wants a key.
fn over_http(served: &GatewayProcess, key: &str) -> Command {
    let mut inspector = inspector();
    let key = format!("Authorization: Bearer {key}");
    inspector.args([served.url.as_str(), "--transport", "http", "--header", &key]);
    inspector
}

fn inspector() -> Command {
    let mut inspector = program("node", "node");
    inspector.args(["node_modules/.bin/mcp-inspector", "--cli"]);
    inspector
}

/// Returns the inspector's output for a method.
fn ask(mut inspector: Command, arguments: &[&str]) -> Value {
    let output = passes(inspector.arg("--method").args(arguments));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The names in a list.
fn names(list: &Value) -> Vec<&str> {
    let list = list.as_array().unwrap();
    list.iter().map(|one| one["name"].as_str().unwrap()).collect()
}

/// All that is asked, of a server that is reached anew each time.
fn inspect(reach: &dyn Fn() -> Command) {
    // Exit code 6 is a schema that some client cannot read; `passes` would show it.
    let listed = ask(reach(), &["tools/list", "--strict"]);
    let tools = names(&listed["tools"]);
    for tool in ["run_python", "sandbox_exec", "code_interpreter"] {
        assert!(tools.contains(&tool), "{tools:?}");
    }

    let code = "code=print('printed')\n6 * 7 + 0.5";
    let call = [
        "tools/call",
        "--tool-name",
        "run_python",
        "--format",
        "json",
        "--tool-arg",
    ];
    let ran = ask(reach(), &[&call[..], &[code]].concat());
    let result = &ran["result"];
    assert_eq!(result["isError"], false, "{ran}");
    assert_eq!(result["structuredContent"]["stdout"], "printed\n", "{ran}");
    assert_eq!(result["structuredContent"]["outputs"][0]["value"], 42.5, "{ran}");

    let prompts = ask(reach(), &["prompts/list"]);
    assert_eq!(
        names(&prompts["prompts"]),
        ["interpreter", "workbench", "derivation"]
    );
    let prompt = ask(reach(), &["prompts/get", "--prompt-name", "workbench"]);
    let said = prompt["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(said.contains("sandbox_exec"), "{said}");
    let templates = ask(reach(), &["resources/templates/list"]);
    let templates = names(&templates["resourceTemplates"]);
    assert_eq!(templates, ["artifact", "session-file", "session-dataset"]);
}

#[test]
fn the_inspector_finds_no_fault_with_a_server_that_it_starts() {
    require!(McpNode);
    inspect(&over_stdio);
}

#[test]
fn the_inspector_finds_no_fault_with_a_server_over_http_and_reads_what_calls_made() {
    require!(McpNode);
    let served = GatewayProcess::shared();
    let key = served.key().unwrap();
    let reach = || over_http(&served, &key);
    inspect(&reach);

    // A session outlives its connection here, so what one invocation made another one reads.
    let code = "code=open('a.txt', 'w').write('written');";
    let call = [
        "tools/call",
        "--tool-name",
        "run_python",
        "--format",
        "json",
        "--tool-arg",
    ];
    let ran = ask(reach(), &[&call[..], &[code]].concat());
    let uri = ran["result"]["structuredContent"]["files"][0]["uri"]
        .as_str()
        .unwrap();
    let listed = ask(reach(), &["resources/list"]);
    assert!(listed["resources"].to_string().contains(uri), "{listed}");
    let read = ask(reach(), &["resources/read", "--uri", uri]);
    assert_eq!(read["contents"][0]["text"], "written", "{read}");
}
