//! Turns that fetch with tools of servers and derive from what these gave, in real sandboxes.

use std::sync::Arc;

use cellblock_gateway::Options;
use cellblock_gateway::provider::Provider;
use cellblock_gateway::provider::scripted::{Answer, Scripted};
use cellblock_gateway::tools::{ConfiguredServer, ContractRule};
use cellblock_interpreter::{OfferedTools, ServerTool, ToolReply, ToolServer, ToolServerError};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use crate::order::Order;
use crate::support::{Server, block_on, events, interpreter_tool, serve_with};

/// Days of each series.
const DAYS: i64 = 90;

/// A server of two series.
#[derive(Debug)]
struct Market {
    days: i64,
}

impl ToolServer for Market {
    fn label(&self) -> &'static str {
        "market"
    }

    fn tools(&self) -> BoxFuture<'_, Result<Arc<OfferedTools>, ToolServerError>> {
        let tool = |name: &str| ServerTool {
            name: name.to_owned(),
            description: Some(format!("{name}, day by day")),
            input_schema: json!({"type": "object", "properties": {"symbol": {"type": "string"}}})
                .as_object()
                .unwrap()
                .clone(),
            annotations: None,
        };
        let tools = vec![tool("get_price_history"), tool("get_net_flow")];
        Box::pin(async move {
            Ok(Arc::new(OfferedTools {
                tools,
                left_out: Vec::new(),
            }))
        })
    }

    fn call(
        &self,
        tool: &str,
        _arguments: Map<String, Value>,
    ) -> BoxFuture<'_, Result<ToolReply, ToolServerError>> {
        let series = series(tool, self.days);
        Box::pin(async move { Ok(ToolReply::Result(series)) })
    }
}

fn series(tool: &str, days: i64) -> Value {
    let key = if tool == "get_price_history" {
        "close"
    } else {
        "net_flow"
    };
    let rows = (0..days).map(|day| {
        let date = format!("2026-{:02}-{:02}", 1 + day / 28, 1 + day % 28);
        json!({"date": date, key: 100 + day * 3 % 17})
    });
    rows.collect()
}

fn tools(options: &mut Options) {
    options.tools.configured = vec![ConfiguredServer {
        server: Arc::new(Market { days: DAYS }),
        always: true,
    }];
}

async fn start(answers: Vec<Answer>, change: impl FnOnce(&mut Options)) -> (Server, Arc<Scripted>) {
    let provider = Arc::new(Scripted::new(answers));
    let model = Arc::clone(&provider) as Arc<dyn Provider>;
    let server = serve_with(model, |options| {
        tools(options);
        change(options);
    });
    (server.await, provider)
}

fn fetches() -> Answer {
    Answer::new()
        .call("c1", "get_price_history", r#"{"symbol": "ACME"}"#)
        .call("c2", "get_net_flow", r#"{"symbol": "ACME"}"#)
}

/// A call of the interpreter under a contract.
fn derives(code: &str, artifacts: &[&str]) -> Answer {
    let arguments = json!({
        "intent": "compare price and flow",
        "code": code,
        "postProcessingContract": {
            "operation": "join two series by day and draw them",
            "reason": "neither tool draws",
            "inputAliases": ["get_price_history_1", "get_net_flow_1"],
            "expectedArtifacts": artifacts,
        },
    });
    Answer::new().call("c3", "code_interpreter", &arguments.to_string())
}

fn says(text: &str) -> Answer {
    Answer::new().text(text)
}

const DRAWS: &str = "\
merged = safe_merge_timeseries(get_price_history_1, get_net_flow_1, time_col='date', names=['price', 'flow'])
fig, ax = plt.subplots()
ax.plot(merged.index, merged['close'])
";
const SAVES: &str = "\
merged = safe_merge_timeseries(get_price_history_1, get_net_flow_1, time_col='date', names=['price', 'flow'])
fig, ax = plt.subplots()
ax.plot(merged.index, merged['close'])
save_figure('price by day', title='ACME')
set_result({'rows': len(merged), 'flow': int(merged['net_flow'].sum())})
";

fn asking() -> Value {
    json!({
        "input": "How do ACME's price and flow compare? Draw it.",
        "tools": interpreter_tool(),
        "include": ["code_interpreter_call.outputs"],
        "metadata": {"chart_intent": "explicit"},
    })
}

fn items<'a>(response: &'a Value, kind: &str) -> Vec<&'a Value> {
    let items = response["output"].as_array().unwrap().iter();
    items.filter(|item| item["type"] == kind).collect()
}

/// What the model read of its last calls.
fn read(provider: &Scripted, asked: usize) -> Vec<String> {
    let items = json!(provider.asked()[asked].items);
    let outputs = items
        .as_array()
        .unwrap()
        .iter()
        .filter(|item| item["type"] == "function_call_output");
    outputs
        .map(|item| match &item["output"] {
            Value::String(text) => text.clone(),
            parts => parts[0]["text"].as_str().unwrap().to_owned(),
        })
        .collect()
}

/// What is reported of the whole turn, and can be had from its addresses.
async fn reported(server: &Server, report: &Value) {
    assert_eq!(
        (&report["outcome"], &report["gaps"]),
        (&json!("answer"), &json!([]))
    );
    assert_eq!(
        (&report["steps_used"], &report["derivations"]),
        (&json!(4), &json!(2))
    );
    let artifacts = report["artifacts"].as_array().unwrap();
    assert_eq!(artifacts.len(), 1);
    assert_eq!(
        (&artifacts[0]["kind"], &artifacts[0]["title"]),
        (&json!("image"), &json!("ACME"))
    );
    let url = artifacts[0]["url"].as_str().unwrap();
    assert!(url.contains(artifacts[0]["sha256"].as_str().unwrap()), "{url}");
    let path = url.strip_prefix("/v1/").unwrap();
    let picture = server.request("GET", path).send().await.unwrap();
    assert_eq!(picture.headers()["content-type"], "image/png");
    assert!(picture.bytes().await.unwrap().starts_with(b"\x89PNG\r\n\x1a\n"));
    assert_eq!(
        server
            .of("bob")
            .request("GET", path)
            .send()
            .await
            .unwrap()
            .status(),
        404
    );

    let dataset = &report["dataset"];
    let path = dataset["url"].as_str().unwrap().strip_prefix("/v1/").unwrap();
    let whole = server.get(path).await.ok();
    assert_eq!(whole["aliases"]["get_net_flow_1"], series("get_net_flow", DAYS));
    assert_eq!(whole["result"]["rows"], DAYS);
}

#[test]
fn a_question_is_fetched_for_derived_from_repaired_and_answered() {
    block_on(async {
        let answers = vec![
            fetches(),
            derives(DRAWS, &["image"]),
            derives(SAVES, &["image"]),
            says("They move together."),
        ];
        let (server, provider) = start(answers, |_| {}).await;
        let text = server.stream(asking()).await.text().await.unwrap();
        let events = events(&text);
        Order::check(&events).unwrap();
        let response = &events.last().unwrap()["response"];
        assert_eq!(response["status"], "completed", "{response}");

        let fetched = items(response, "mcp_call");
        assert_eq!(
            serde_json::from_str::<Value>(fetched[0]["output"].as_str().unwrap()).unwrap(),
            series("get_price_history", DAYS)
        );
        let derived = items(response, "code_interpreter_call");
        assert_eq!(
            (&derived[0]["status"], &derived[1]["status"]),
            (&json!("failed"), &json!("completed"))
        );
        let shown = |item: &Value| -> Vec<Value> {
            item["outputs"]
                .as_array()
                .unwrap()
                .iter()
                .map(|output| output["type"].clone())
                .collect()
        };
        assert!(!shown(derived[0]).contains(&json!("image")), "{}", derived[0]);
        assert!(shown(derived[1]).contains(&json!("image")), "{}", derived[1]);
        // The mistake was told in words to repair it from.
        let mistake = &read(&provider, 2)[2];
        assert!(
            mistake.contains("save_figure") && mistake.contains("4 attempts are left"),
            "{mistake}"
        );
        assert!(
            read(&provider, 3)[3].contains("result alias: code_interpreter_1"),
            "{}",
            read(&provider, 3)[3]
        );
        assert_eq!(
            items(response, "message")[0]["content"][0]["text"],
            "They move together."
        );

        reported(&server, &response["cellblock"]).await;

        // The model knows how to derive, and that nothing is fetched from Python.
        let first = &provider.asked()[0];
        let instructions = first.instructions.as_deref().unwrap();
        assert!(
            instructions.contains("### Contract") && instructions.contains("save_figure"),
            "{instructions}"
        );
        let offered: Vec<_> = first.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(
            offered,
            [
                "code_interpreter",
                "render_chart",
                "get_price_history",
                "get_net_flow"
            ]
        );
        assert!(
            provider.asked()[1]
                .instructions
                .as_deref()
                .unwrap()
                .contains("`get_net_flow_1`")
        );
    });
}

#[test]
fn a_chart_is_drawn_from_one_result_without_code() {
    block_on(async {
        let draws = |alias: &str, x: &str| {
            let arguments = json!({
                "alias": alias, "title": "Flow", "alt": "flow by day",
                "spec": {"type": "line", "xKey": x, "series": [{"key": "net_flow"}]},
            });
            Answer::new().call("c3", "render_chart", &arguments.to_string())
        };
        let answers = vec![
            fetches(),
            draws("get_net_flow_1", "day"),
            draws("get_net_flow_1", "date"),
            says("There."),
        ];
        let (server, provider) = start(answers, |_| {}).await;
        let response = server.create(asking()).await.ok();
        let calls = items(&response, "mcp_call");
        assert_eq!(
            (&calls[2]["server_label"], &calls[2]["name"], &calls[2]["status"]),
            (&json!("cellblock"), &json!("render_chart"), &json!("failed"))
        );
        assert_eq!(calls[3]["status"], "completed");
        let mistake = &read(&provider, 2)[2];
        assert!(
            mistake.contains("no row has the key") && mistake.contains("attempts are left"),
            "{mistake}"
        );
        let report = &response["cellblock"];
        assert_eq!(
            (&report["outcome"], &report["derivations"]),
            (&json!("answer"), &json!(0))
        );
        let chart = &report["artifacts"][0];
        assert_eq!(
            (&chart["kind"], &chart["title"]),
            (&json!("chart"), &json!("Flow"))
        );
        let path = chart["url"].as_str().unwrap().strip_prefix("/v1/").unwrap();
        let document = server.get(path).await.ok();
        assert!(document.to_string().contains("net_flow"), "{document}");
        // No sandbox was needed.
        assert!(items(&response, "code_interpreter_call").is_empty());
    });
}

#[test]
fn the_next_turn_derives_from_what_earlier_ones_fetched() {
    block_on(async {
        let answers = vec![
            fetches(),
            says("Fetched."),
            derives("set_result(len(get_price_history_1))", &[]),
            says("90."),
            derives("set_result(len(get_net_flow_1) + 1)", &[]),
            says("91."),
        ];
        let (server, provider) = start(answers, |_| {}).await;
        let first = server
            .create(json!({"input": "fetch", "tools": interpreter_tool()}))
            .await
            .ok();
        let second = |input: &'static str| {
            server.create(
                json!({"input": input, "tools": interpreter_tool(), "previous_response_id": first["id"]}),
            )
        };
        let counted = second("count").await.ok();
        assert_eq!(counted["cellblock"]["derivations"], 1, "{counted}");
        assert_eq!(counted["cellblock"]["outcome"], "answer");
        assert!(read(&provider, 3)[2].contains("90"), "{:?}", read(&provider, 3));
        // What was deleted does not take away what others go on from.
        second("count again").await.ok();
        assert!(read(&provider, 5)[2].contains("91"), "{:?}", read(&provider, 5));
        let deleted = server
            .send(server.request("DELETE", &format!("responses/{}", first["id"].as_str().unwrap())))
            .await;
        assert_eq!(deleted.ok()["deleted"], true);
    });
}

#[test]
fn a_client_that_keeps_the_conversation_itself_brings_the_results_back() {
    block_on(async {
        let answers = vec![
            fetches(),
            says("Fetched."),
            derives("set_result(len(get_price_history_1) + len(get_net_flow_1))", &[]),
            says("180."),
        ];
        let (server, provider) = start(answers, |_| {}).await;
        let first = server
            .create(json!({"input": "fetch", "tools": interpreter_tool(), "store": false}))
            .await
            .ok();
        let mut input = first["output"].as_array().unwrap().clone();
        input.push(json!({"role": "user", "content": "count"}));
        let second = server
            .create(json!({"input": input, "tools": interpreter_tool(), "store": false}))
            .await
            .ok();
        assert_eq!(second["cellblock"]["outcome"], "answer", "{second}");
        assert!(read(&provider, 3)[2].contains("180"), "{:?}", read(&provider, 3));
    });
}

#[test]
fn a_result_too_large_for_its_item_comes_back_whole_to_whom_it_belongs() {
    block_on(async {
        let counts = || derives("set_result(len(get_price_history_1) + len(get_net_flow_1))", &[]);
        let answers = vec![
            fetches(),
            says("Fetched."),
            counts(),
            says("6000."),
            counts(),
            says("No."),
        ];
        let large =
            |options: &mut Options| options.tools.configured[0].server = Arc::new(Market { days: 3000 });
        let (server, provider) = start(answers, large).await;
        let ask = |input: Value| json!({"input": input, "tools": interpreter_tool(), "store": false});
        let first = server.create(ask(json!("fetch"))).await.ok();
        let outline = items(&first, "mcp_call")[0]["output"].as_str().unwrap();
        assert!(
            outline.len() < 10_000 && outline.contains("/v1/artifacts/"),
            "{outline}"
        );
        let mut input = first["output"].as_array().unwrap().clone();
        input.push(json!({"role": "user", "content": "count"}));
        server.create(ask(json!(input.clone()))).await.ok();
        assert!(read(&provider, 3)[2].contains("6000"), "{:?}", read(&provider, 3));
        // Who guesses an address has no result.
        server.of("bob").create(ask(json!(input))).await.ok();
        let told = read(&provider, 5).pop().unwrap();
        assert!(
            told.contains("get_price_history_1") && !told.contains("6000"),
            "{told}"
        );
    });
}

#[test]
fn a_client_that_refers_to_items_by_their_ids_goes_on_with_their_results() {
    block_on(async {
        let counts = |code: &str| derives(code, &[]);
        let answers = vec![
            fetches(),
            says("Fetched."),
            counts("set_result(len(get_price_history_1) + len(get_net_flow_1))"),
            says("180."),
            counts("set_result(code_interpreter_1 + 1)"),
            says("181."),
            fetches(),
            says("Fetched elsewhere."),
            counts("set_result(0)"),
            says("None."),
        ];
        let (server, provider) = start(answers, |_| {}).await;
        let ask = async |input: Vec<Value>| {
            server
                .create(json!({"input": input, "tools": interpreter_tool()}))
                .await
                .ok()
        };
        let refer = |response: &Value| -> Vec<Value> {
            let items = response["output"].as_array().unwrap().iter();
            items
                .map(|item| json!({"type": "item_reference", "id": item["id"]}))
                .collect()
        };
        let user = |text: &str| json!({"role": "user", "content": text});
        let mut said = vec![user("fetch")];
        let first = ask(said.clone()).await;
        said.extend(refer(&first));
        said.push(user("count"));
        let second = ask(said.clone()).await;
        assert_eq!(second["cellblock"]["outcome"], "answer", "{second}");
        assert!(read(&provider, 3)[2].contains("180"), "{:?}", read(&provider, 3));
        // The third turn has what both fetched and derived.
        said.extend(refer(&second));
        said.push(user("add one"));
        ask(said.clone()).await;
        assert!(read(&provider, 5)[3].contains("181"), "{:?}", read(&provider, 5));

        // Another conversation has the same aliases for results of its own: neither is taken for the other.
        let other = ask(vec![user("fetch")]).await;
        let mixed = [refer(&other), refer(&first), vec![user("count")]].concat();
        ask(mixed).await;
        let told = read(&provider, 9).pop().unwrap();
        assert!(told.contains("is no alias"), "{told}");
    });
}

#[test]
fn code_without_a_contract_runs_only_where_the_operator_lets_it() {
    let plain = || {
        Answer::new().call(
            "c1",
            "code_interpreter",
            &json!({"code": "print(6 * 7)"}).to_string(),
        )
    };
    for (rule, ran) in [
        (ContractRule::Required, false),
        (ContractRule::Optional, true),
        (ContractRule::Off, true),
    ] {
        block_on(async {
            let (server, provider) = start(vec![plain(), says("ok")], |options| {
                options.derivation.contract = rule;
            })
            .await;
            let response = server
                .create(json!({"input": "go", "tools": interpreter_tool()}))
                .await
                .ok();
            let told = read(&provider, 1).remove(0);
            assert_eq!(told.contains("42"), ran, "{told}");
            let status = if ran { "completed" } else { "failed" };
            assert_eq!(items(&response, "code_interpreter_call")[0]["status"], status);
            if !ran {
                assert!(told.contains("postProcessingContract"), "{told}");
            }
        });
    }
}

#[test]
fn a_turn_that_fetches_nothing_runs_code_with_a_contract_and_without() {
    block_on(async {
        let plain = Answer::new().call(
            "c4",
            "code_interpreter",
            &json!({"code": "print(6 * 7)"}).to_string(),
        );
        let answers = vec![
            fetches(),
            says("Fetched."),
            plain,
            derives("set_result(len(get_price_history_1))", &[]),
            says("90."),
        ];
        let on_request = |options: &mut Options| options.tools.configured[0].always = false;
        let (server, provider) = start(answers, on_request).await;
        let mut named = interpreter_tool();
        let market = json!({"type": "mcp", "server_label": "market", "require_approval": "never"});
        named.as_array_mut().unwrap().push(market);
        let first = server
            .create(json!({"input": "fetch", "tools": named}))
            .await
            .ok();
        let second =
            json!({"input": "count", "tools": interpreter_tool(), "previous_response_id": first["id"]});
        server.create(second).await.ok();
        let told = read(&provider, 4);
        assert!(told[2].contains("42") && told[3].contains("90"), "{told:?}");
    });
}

#[test]
fn a_derivation_that_fails_too_often_is_given_up_and_the_answer_says_so() {
    block_on(async {
        let wrong = || derives("raise ValueError('no')", &[]);
        let answers = vec![fetches(), wrong(), wrong(), wrong(), says("unused")];
        let (server, provider) = start(answers, |options| options.derivation.max_attempts = 2).await;
        let response = server.create(asking()).await.ok();
        assert_eq!(response["status"], "incomplete");
        assert_eq!(response["incomplete_details"]["reason"], "max_attempts");
        let report = &response["cellblock"];
        assert_eq!(
            (&report["outcome"], &report["stop_reason"]),
            (&json!("best_effort"), &json!("attempts_exhausted"))
        );
        let gaps: Vec<_> = report["gaps"]
            .as_array()
            .unwrap()
            .iter()
            .map(|gap| gap["code"].as_str().unwrap())
            .collect();
        assert_eq!(gaps, ["chart_missing", "attempts_exhausted"]);
        assert_eq!(report["artifacts"], json!([]));
        let offered = |asked: usize| {
            provider.asked()[asked]
                .tools
                .iter()
                .any(|tool| tool.name == "code_interpreter")
        };
        assert!(offered(2) && !offered(3));
        let text = items(&response, "message")[0]["content"][0]["text"]
            .as_str()
            .unwrap();
        assert!(text.contains("ValueError: no"), "{text}");
    });
}

#[test]
fn what_a_request_says_of_servers_is_checked_before_anything_is_asked() {
    block_on(async {
        let (server, provider) = start(Vec::new(), |_| {}).await;
        let never = |mut tool: Value| {
            tool["type"] = json!("mcp");
            tool["require_approval"] = json!("never");
            tool
        };
        for (tool, code, param) in [
            (
                json!({"type": "mcp", "server_label": "market"}),
                "unsupported_parameter",
                "tools[0].require_approval",
            ),
            (
                json!({"type": "mcp", "server_label": "market", "require_approval": "always"}),
                "unsupported_parameter",
                "tools[0].require_approval",
            ),
            (
                never(json!({"server_label": "market", "connector_id": "connector_gmail"})),
                "unsupported_parameter",
                "tools[0].connector_id",
            ),
            (
                never(json!({"server_label": "no such"})),
                "invalid_value",
                "tools[0].server_label",
            ),
            (
                never(json!({"server_label": "nobody"})),
                "unknown_server",
                "tools[0].server_label",
            ),
            (
                never(json!({"server_label": "x", "server_url": "https://tools.example.com/mcp"})),
                "server_not_allowed",
                "tools[0].server_url",
            ),
            (
                never(json!({"server_label": "market", "headers": {"X-Key": "s3cret"}})),
                "invalid_value",
                "tools[0].headers",
            ),
            (
                never(json!({"server_label": "market", "headers": {"X-Key": 7}})),
                "invalid_type",
                "tools[0].headers.X-Key",
            ),
            (
                never(json!({"server_label": "market", "allowed_tools": "all"})),
                "invalid_type",
                "tools[0].allowed_tools",
            ),
        ] {
            let got = server.create(json!({"input": "go", "tools": [tool]})).await;
            assert_eq!(got.error(), (400, code), "{tool}: {}", got.body);
            assert_eq!(got.body["error"]["param"], param, "{tool}");
            assert!(!got.body.to_string().contains("s3cret"));
        }
        let approval =
            json!([{"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": true}]);
        let got = server.create(json!({"input": approval})).await;
        assert_eq!(got.error(), (400, "unsupported_parameter"));
        assert!(provider.asked().is_empty());
    });
}

#[test]
fn a_response_does_not_repeat_the_headers_for_a_server() {
    block_on(async {
        let (server, _) = start(vec![says("Hi.")], |_| {}).await;
        let tool = json!({"type": "mcp", "server_label": "market", "require_approval": "never", "allowed_tools": ["get_net_flow"]});
        let response = server.create(json!({"input": "go", "tools": [tool]})).await.ok();
        assert_eq!(
            response["tools"],
            json!([{
                "type": "mcp", "server_label": "market", "server_url": null, "require_approval": "never",
                "allowed_tools": ["get_net_flow"],
            }])
        );
        let list = items(&response, "mcp_list_tools")[0];
        assert_eq!(list["tools"][0]["name"], "get_net_flow");
        // Without `code_interpreter` nothing is derived, and nothing says how.
        assert_eq!(response["instructions"], Value::Null);
    });
}
