//! Code in the sandboxes of another server.

use cellblock_testkit::wait::block_until;
use cellblock_testkit::{LeakOwner, require};
use rustix::process::Signal;
use serde_json::json;

use crate::support::{GatewayProcess, call, serve};

/// Returns the number of sandboxes that a server has given.
fn given(server: &GatewayProcess) -> String {
    let (status, metrics) = server.text("/metrics");
    assert_eq!(status, 200);
    let line = metrics
        .lines()
        .find(|line| line.starts_with("cellblock_sandboxes "));
    line.unwrap().to_owned()
}

#[test]
fn a_conversation_keeps_its_variables_in_the_sandboxes_of_another_server() {
    require!(UserNamespaces);
    let there = serve("remote: {serve: true}\npool: {ready: 1}", &["--demo"], &[]);
    let config = format!("sandbox_url: http://{}\npool: {{ready: 0}}", there.address);
    let here = serve(&config, &["--demo"], &[]);
    assert_eq!(
        here.line(),
        "code runs in the sandboxes of the Cellblock at `sandbox_url`"
    );
    let first = here.run_code("x = 41\nopen('r.csv', 'w').write('a,b')", None);
    let second = here.run_code("print(x + 1, open('r.csv').read())", Some(&first));
    assert_eq!(call(&second), ("completed".to_owned(), "42 a,b\n".to_owned()));
    let container = |response: &serde_json::Value| response["output"][1]["container_id"].clone();
    assert_eq!(container(&first), container(&second));
    assert_eq!(given(&there), "cellblock_sandboxes 1");

    let (status, session) = here.post("/v1/sessions", &json!({}));
    assert_eq!(status, 201, "{session}");
    let cells = format!("/v1/sessions/{}/cells", session["id"].as_str().unwrap());
    let (status, cell) = here.post(&cells, &json!({"code": "6 * 7"}));
    assert_eq!(
        (status, &cell["sandbox"]["backend"]),
        (200, &json!("remote")),
        "{cell}"
    );

    // And MCP, whose sessions are as far away.
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "run_python", "arguments": {"code": "6 * 7"}}});
    let (status, answer) = here.message("/mcp", &message);
    assert_eq!(status, 200, "{answer}");
    assert_eq!(
        answer["result"]["structuredContent"]["outputs"][0]["value"], 42,
        "{answer}"
    );
    assert_eq!(given(&there), "cellblock_sandboxes 3");

    let mut owners = [here.owner(), there.owner()];
    owners.iter_mut().for_each(LeakOwner::look);
    assert_eq!(here.end(Signal::INT), Some(0));
    block_until("no sandbox is given any more", || {
        given(&there) == "cellblock_sandboxes 0"
    });
    assert_eq!(there.end(Signal::TERM), Some(0));
    for mut owner in owners {
        block_until("nothing is left", || {
            let left = owner.count();
            (left.processes, left.namespaces, left.cgroups, left.id_locks) == (0, 0, 0, 0)
        });
    }
}

#[test]
fn a_server_that_ends_takes_its_sandboxes_with_it_and_the_conversation_hears_of_it() {
    require!(UserNamespaces);
    let there = serve("remote: {serve: true}", &["--demo", "--grace", "1"], &[]);
    let config = format!(
        "providers: {{code_interpreter: {{settings: {{sandbox_url: 'http://{}', execution_timeout: \
         20}}}}}}\npool: {{ready: 0}}",
        there.address
    );
    let here = serve(&config, &["--demo"], &[]);
    let first = here.run_code("print('there')", None);
    assert_eq!(call(&first), ("completed".to_owned(), "there\n".to_owned()));
    assert_eq!(there.end(Signal::TERM), Some(0));
    let second = here.run_code("print('nowhere')", Some(&first));
    let (status, told) = call(&second);
    assert_eq!(status, "failed", "{told}");
    assert!(!told.contains("nowhere"), "{told}");
    assert_eq!(here.end(Signal::INT), Some(0));
}
