//! Instructions of `docs/guides/mcp.md`, read as their agents read them, and started as they start them.

use std::collections::BTreeSet;

use cellblock_testkit::{binary, fenced, require, workspace_root};
use serde_json::{Value, json};

use crate::place::{GatewayProcess, folder as folder_of, passes, program};

/// A program and its arguments.
type Words = Vec<String>;

fn page() -> String {
    std::fs::read_to_string(workspace_root().join("docs/guides/mcp.md")).unwrap()
}

/// Each agent of a text's first table, with what is to be done for it.
fn agents(page: &str) -> Vec<(&str, &str)> {
    let rows = page.lines().skip_while(|line| !line.starts_with("|---"));
    let rows = rows
        .skip(1)
        .map_while(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    rows.map(|row| row.split_once(" | ").unwrap()).collect()
}

/// The code in a line of text.
fn codes(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// The object that a piece of configuration is, or is the inside of.
fn object(text: &str) -> Option<Value> {
    serde_json::from_str(text)
        .ok()
        .filter(Value::is_object)
        .or_else(|| serde_json::from_str(&format!("{{{text}}}")).ok())
}

/// The commands that a piece of configuration starts: an array, or a program with `args` beside it.
fn commands(value: &Value, found: &mut Vec<Words>) {
    let Some(object) = value.as_object() else { return };
    let words = |value: &Value| -> Words {
        let words = value.as_array().into_iter().flatten();
        words.map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    match object.get("command") {
        Some(Value::String(program)) => {
            let mut command = vec![program.clone()];
            command.extend(words(&object["args"]));
            found.push(command);
        }
        Some(array) => found.push(words(array)),
        None => object.values().for_each(|value| commands(value, found)),
    }
}

/// The command that a line of a shell gives an agent: what begins with ours.
fn given(line: &str) -> Option<Words> {
    let begin = line.rfind("cellblock mcp")?;
    Some(line[begin..].split(' ').map(str::to_owned).collect())
}

/// Returns the commands that a piece of the page's code starts.
fn started(code: &str) -> Vec<Words> {
    let mut found = Vec::new();
    match object(code) {
        Some(object) => commands(&object, &mut found),
        None => found.extend(given(code)),
    }
    found
}

/// The addresses that a piece of configuration names, with their headers.
fn addresses(value: &Value, found: &mut Vec<Value>) {
    let Some(object) = value.as_object() else { return };
    if object.contains_key("url") {
        found.push(json!({"url": object["url"], "headers": object["headers"]}));
    } else {
        object.values().for_each(|value| addresses(value, found));
    }
}

/// Returns the address in a line of a shell: itself, and the header in quotes, or the variable that has the
/// key.
fn named(line: &str) -> Value {
    let url = line.split(' ').find(|word| word.starts_with("http://")).unwrap();
    if line.contains("--bearer-token-env-var CELLBLOCK_KEY") {
        return json!({"url": url, "headers": {"Authorization": "Bearer cbk_…"}});
    }
    let header = line.split('"').nth(1).unwrap();
    let (name, value) = header.split_once(": ").unwrap();
    json!({"url": url, "headers": {name: value}})
}

/// Reaches a server as an agent would that has this in its configuration, and runs a line of Python
/// through it.
fn start(server: &Value) {
    let folder = binary().unwrap().parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(folder).chain(std::env::split_paths(&path))).unwrap();
    let mut agent = program("node", "node");
    let output = passes(
        agent
            .arg(folder_of("node").join("start.js"))
            .arg(server.to_string())
            .env("PATH", path)
            // The page's paths are those of the repository.
            .current_dir(workspace_root()),
    );
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["value"], 42, "{server}: {said}");
}

#[test]
fn every_agents_line_starts_the_same_command() {
    let page = page();
    let lines = fenced(&page, "json");
    let shared: Vec<_> = lines.iter().flat_map(|block| started(block)).collect();
    let agents = agents(&page);
    assert!(agents.len() >= 11, "{agents:?}");
    for (agent, told) in agents {
        let mut own: Vec<_> = codes(told).into_iter().flat_map(started).collect();
        if own.is_empty() && told.contains("the lines below") || told.contains("the same lines") {
            own.clone_from(&shared);
        }
        assert_eq!(own, [["cellblock", "mcp"]], "{agent}: {told}");
    }
}

#[test]
fn a_command_through_another_program_is_the_same_at_its_end() {
    let page = page();
    let through: Vec<_> = page
        .lines()
        .flat_map(codes)
        .filter(|code| code.starts_with("\"command\": \""))
        .flat_map(started)
        .collect();
    assert_eq!(through.len(), 2, "{through:?}");
    for command in through {
        assert_eq!(command[command.len() - 2..], ["cellblock", "mcp"], "{command:?}");
    }
}

#[test]
fn every_command_of_the_page_starts_and_runs_python() {
    require!(McpNode);
    let page = page();
    let shell = fenced(&page, "sh").into_iter().flat_map(str::lines);
    let shell = shell
        .filter(|line| line.starts_with("cellblock mcp"))
        .filter_map(given);
    let json = fenced(&page, "json").into_iter().flat_map(started);
    let commands: BTreeSet<Words> = shell.chain(json).collect();
    assert!(commands.len() >= 2, "{commands:?}");
    for command in commands {
        start(&json!({"command": command[0], "args": command[1..]}));
    }
}

#[test]
fn every_address_of_the_page_is_the_same_and_such_a_one_runs_python() {
    require!(McpNode);
    let page = page();
    let (_, section) = page.split_once("\n## Over HTTP\n").unwrap();
    let mut shared = Vec::new();
    for block in fenced(section, "json") {
        addresses(&object(block).unwrap(), &mut shared);
    }
    let local = agents(section)
        .into_iter()
        .filter(|(agent, _)| *agent != "OpenAI's API");
    let mut all = shared.clone();
    for (agent, told) in local {
        let before = all.len();
        for code in codes(told) {
            match object(code) {
                Some(object) => addresses(&object, &mut all),
                None if code.contains("http://") => all.push(named(code)),
                None => {}
            }
        }
        assert!(
            all.len() > before || told.contains("the lines below"),
            "{agent}: {told}"
        );
    }
    assert!(all.len() >= 8, "{all:#?}");
    let told = json!({"url": "http://127.0.0.1:8080/mcp", "headers": {"Authorization": "Bearer cbk_…"}});
    for one in all {
        assert_eq!(one, told);
    }

    let served = GatewayProcess::shared();
    let key = format!("Bearer {}", served.key().unwrap());
    start(&json!({"url": served.url, "headers": {"Authorization": key}}));
}
