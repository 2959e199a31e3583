//! Answers to clients of both revisions at one address.

use cellblock_testkit::wait::until_ok;
use rmcp::model::{CallToolResponse, GetTaskParams, ReadResourceRequestParams, TaskPayload};
use serde_json::json;

use super::client::{Client, begin, begin_code, block_on, call, connect, done, newest, post, revisions, run};
use crate::server::{ServerHome, until};

const REQUESTS: &str = "cellblock_http_requests_total{method=\"POST\",route=\"/mcp\",status=\"200\"}";
const CELLS: &str = "cellblock_executions_total{toolset=\"interpreter\",outcome=\"completed\"}";

#[test]
fn both_revisions_are_answered_at_one_address() {
    let place = ServerHome::new();
    let data = place.temporary().join("wine.csv");
    std::fs::write(&data, "a,b\n1,2\n").unwrap();
    let datasets = format!("{{wine: '{}'}}", data.display());
    let server = place.serve_with(&[], &[("CELLBLOCK_SERVE__MCP__DATASETS", &datasets)]);
    block_on(async {
        for (number, revision) in revisions().into_iter().enumerate() {
            let client = Client::default();
            let connected = begin(server.address, None, client.clone(), revision)
                .await
                .unwrap();
            let tools = connected.list_tools(None).await.unwrap().tools;
            assert_eq!(
                (tools.len(), &*tools[0].name),
                (19, "run_python"),
                "revision {number}"
            );
            let code = "print('printed', flush=True)\nimport time; time.sleep(0.5)\n\
                        open('r.csv', 'w').write('x')\nopen('/tmp/data/wine.csv').read()";
            let ran = run(&connected, None, code).await;
            assert_eq!(ran["outputs"][0]["value"], "a,b\n1,2\n");
            assert!(client.heard().contains("printed"), "{}", client.heard());
            let file = ran["files"][0]["uri"].as_str().unwrap();
            let read = connected
                .read_resource(ReadResourceRequestParams::new(file))
                .await;
            let content = serde_json::to_value(&read.unwrap().contents).unwrap();
            assert_eq!(content[0]["text"], "x", "{content}");
            let prompts = connected.list_prompts(None).await.unwrap().prompts;
            assert_eq!(prompts[0].name, "interpreter");
            done(
                &connected,
                "close_session",
                json!({"session_id": ran["session_id"]}),
            )
            .await;
        }
    });
    assert_eq!(server.metric(CELLS, &[]), 2);
    assert!(server.metric(REQUESTS, &[]) >= 10);
    let lines = server.log();
    let answered = lines
        .lines()
        .filter(|line| line.contains("answered") && line.contains("/mcp"));
    assert!(answered.count() >= 10);
}

#[test]
fn closing_the_stream_interrupts_the_code_and_variables_stay() {
    let place = ServerHome::new();
    let server = place.serve(&[]);
    block_on(async {
        let client = connect(&server, None).await;
        let session = run(&client, None, "kept = 42").await["session_id"].clone();
        let session = session.as_str();
        drop(begin_code(server.address, session, "while True: pass"));
        let kept = run(&client, session, "kept").await;
        assert_eq!(kept["outputs"][0]["value"], 42);
    });
    let stopped = "cellblock_executions_total{toolset=\"interpreter\",outcome=\"interrupted\"}";
    assert_eq!(server.metric(stopped, &[]), 1);
}

#[test]
fn a_long_cell_is_a_task_where_the_client_declared_them() {
    let place = ServerHome::new();
    let server = place.serve_with(&[], &[("CELLBLOCK_SERVE__MCP__TASK_AFTER", "50ms")]);
    block_on(async {
        let client = Client {
            tasks: true,
            ..Client::default()
        };
        let client = begin(server.address, None, client, newest()).await.unwrap();
        let slow = call(
            "run_python",
            json!({"code": "import time; time.sleep(1.5); 6 * 7"}),
        );
        let CallToolResponse::Task(begun) = client.call_tool_once(slow).await.unwrap() else {
            panic!("not a task")
        };
        let id = begun.task.task_id;
        let result = until_ok(async || {
            let asked = client.get_task(GetTaskParams::new(id.clone())).await;
            match asked.unwrap().task.payload {
                TaskPayload::Completed { result } => Ok(result),
                TaskPayload::Working => Err("it works"),
                other => panic!("{other:?}"),
            }
        })
        .await;
        assert_eq!(result["structuredContent"]["outputs"][0]["value"], 42);
        // Nobody else sees it, and one that did not declare tasks waits.
        let plain = connect(&server, None).await;
        let ran = run(&plain, None, "import time; time.sleep(0.5); 7").await;
        assert_eq!(ran["outputs"][0]["value"], 7);
    });
}

#[test]
fn the_servers_own_names_and_pages_decide() {
    let place = ServerHome::new();
    let own = place.serve(&[]);
    let ask = |server: &crate::server::Server, headers: &[(&str, &str)]| {
        post(server.address, headers, "tools/list", "", json!({})).answer()
    };
    // A page of another site whose name was made to lead here.
    let answer = ask(&own, &[("Host", "evil.example")]);
    assert_eq!(answer.status, 403);
    let told = "the gateway is not reached by this name; list it under `hosts` if it should be";
    assert_eq!(
        answer.json(),
        json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": told}})
    );
    let answer = ask(&own, &[("Origin", "https://evil.example")]);
    assert_eq!(answer.status, 403);
    let told = answer.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(told.starts_with("pages of this origin may not ask"), "{told}");
    until(|| (own.security("host_not_allowed").len() == 1).then_some(()));
    let page = format!("http://{}", own.address);
    assert_eq!(ask(&own, &[("Origin", &page)]).status, 200);

    let named = place.serve_with(
        &[],
        &[
            (
                "CELLBLOCK_SERVE__STATE",
                &place.temporary().join("other").display().to_string(),
            ),
            ("CELLBLOCK_SERVE__HTTP__HOSTS", "[cell.lan]"),
            ("CELLBLOCK_SERVE__HTTP__ORIGINS", "['https://app.example.com']"),
        ],
    );
    assert_eq!(ask(&named, &[("Host", "cell.lan:9")]).status, 200);
    let origin = ("Origin", "https://app.example.com");
    let answer = ask(&named, &[origin]);
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.header("access-control-allow-origin"), Some(origin.1));
    let exposed = answer.header("access-control-expose-headers").unwrap();
    assert!(exposed.contains("mcp-session-id"), "{exposed}");
    let asked = [
        origin,
        ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "mcp-protocol-version"),
    ];
    let answer = crate::http::send(named.address, "OPTIONS /mcp", &asked, "").answer();
    let allowed = answer.header("access-control-allow-headers").unwrap();
    for header in ["mcp-protocol-version", "mcp-method", "mcp-name", "authorization"] {
        assert!(allowed.contains(header), "{header} in {allowed}");
    }
}

#[test]
fn a_request_that_is_too_large_is_rejected_and_the_client_hears_of_it() {
    let place = ServerHome::new();
    let server = place.serve_with(&[], &[("CELLBLOCK_SERVE__HTTP__MAX_BODY", "64KiB")]);
    block_on(async {
        for revision in revisions() {
            let client = begin(server.address, None, Client::default(), revision)
                .await
                .unwrap();
            let large = "#".repeat(100 << 10);
            let error = client
                .call_tool_once(call("run_python", json!({"code": large})))
                .await
                .unwrap_err();
            let told = format!("{error:?}");
            assert!(told.contains("413"), "{told}");
        }
    });
    let large = json!({"name": "run_python", "arguments": {"code": "#".repeat(100 << 10)}});
    let answer = post(server.address, &[], "tools/call", "run_python", large).answer();
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (413, "request_too_large")
    );
}

#[test]
fn mistakes_of_clients_are_answered_and_not_logged_as_warnings() {
    let place = ServerHome::new();
    let server = place.serve(&[]);
    let answer = post(
        server.address,
        &[],
        "tools/call",
        "no_such_tool",
        json!({"name": "no_such_tool"}),
    )
    .answer();
    assert!(answer.body.contains("no_such_tool"), "{}", answer.body);
    let answer = post(server.address, &[], "no/such/method", "", json!({})).answer();
    assert!(answer.body.contains("error"), "{}", answer.body);
    // What is logged after that has been written.
    until(|| server.log().contains("/mcp").then_some(()));
    assert!(
        !server.log().contains("\"WARN\",\"message\":\"response error\""),
        "{}",
        server.log()
    );
    assert!(!server.log().contains("rmcp::service"), "{}", server.log());
}

#[test]
fn it_can_be_switched_off() {
    let place = ServerHome::new();
    let server = place.serve_with(&[], &[("CELLBLOCK_SERVE__MCP__SERVE", "false")]);
    let answer = until(|| Some(post(server.address, &[], "tools/list", "", json!({})).answer()));
    assert_eq!((answer.status, answer.code().as_str()), (404, "not_found"));
}
