//! Anthropic's own clients, unchanged but for the address.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use cellblock_agent::provider::script::Script;
use cellblock_testkit::{SuiteCounts, judged, require, workspace_root};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::timeout;

use crate::support::{block_on, serve};

/// Maximum time of a suite.
const PATIENCE: Duration = Duration::from_mins(3);

/// Answers for what the clients ask.
fn script() -> Script {
    let calls = |name: &str, arguments: Value| json!({"calls": [{"name": name, "arguments": arguments}]});
    let python = |code: &str| calls("code_interpreter", json!({ "code": code }));
    let text = |text: &str| json!({ "text": text });
    let shout = "text = open('/mnt/data/in.txt').read()\nwritten = open('out.txt', 'w').write(text.upper())";
    let price = "price = tools.get_price(symbol='ABC')\nprint(price['usd'] * 2)";
    let path = "/mnt/data/a.txt";
    let conversations = [
        ("say hello", json!([text("Hello, Ada.")])),
        (
            "six times seven",
            json!([python("print(6 * 7)"), text("It is 42.")]),
        ),
        ("divide by zero", json!([python("1 / 0"), text("It fails.")])),
        ("remember x", json!([python("x = 41"), text("Done.")])),
        ("recall x", json!([python("print(x + 1)"), text("It is 42.")])),
        ("shout", json!([python(shout), text("Done.")])),
        (
            "list files",
            json!([
                calls(
                    "bash_code_execution",
                    json!({"command": format!("echo hi | tee {path}")})
                ),
                calls(
                    "text_editor_code_execution",
                    json!({"command": "view", "path": path})
                ),
                text("Done."),
            ]),
        ),
        (
            "use the skill",
            json!([
                calls(
                    "bash_code_execution",
                    json!({"command": "cat /skills/greeter/README.md"})
                ),
                calls(
                    "bash_code_execution",
                    json!({"command": "cat /skills/greeter/SKILL.md; sh /skills/greeter/greet.sh"})
                ),
                text("Greeted."),
            ]),
        ),
        ("the price", json!([python(price), text("It is 84.")])),
        ("fail", json!([{"fail": {"status": 500}}])),
    ];
    let conversations = conversations.map(|(when, answers)| json!({"when": when, "answers": answers}));
    serde_json::from_value(json!({ "conversations": conversations })).unwrap()
}

/// Runs a suite against a gateway, and records its numbers under a name in `docs/judges.md`.
async fn run(judge: &str, program: &str, arguments: &[&str]) {
    let server = serve(Arc::new(script())).await;
    let suite = Command::new(program)
        .args(arguments)
        .current_dir(workspace_root().join("tests/clients/anthropic"))
        .env("CELLBLOCK_URL", format!("http://{}", server.address))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let ran = timeout(PATIENCE, suite).await.unwrap().unwrap();
    let told = [ran.stdout, ran.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(ran.status.success(), "{program} {arguments:?}: {}", told.concat());
    judged(judge, SuiteCounts::read(&told.join("\n")).unwrap());
}

#[test]
fn anthropic_from_pypi_is_served() {
    require!(AnthropicPython);
    block_on(run(
        "anthropic-python",
        ".venv/bin/python",
        &["-m", "unittest", "test_messages"],
    ));
}

#[test]
fn the_sdk_of_npm_is_served() {
    require!(AnthropicNode);
    block_on(run(
        "anthropic-javascript",
        "node",
        &["--test", "--test-reporter=tap", "messages.test.js"],
    ));
}
