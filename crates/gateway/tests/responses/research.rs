//! Turns that fetch with tools of servers and derive from what these gave, in real sandboxes.

use cellblock_agent::provider::scripted::ScriptedAnswer;
use cellblock_agent::tools::ContractRule;
use serde_json::{Value, json};

use crate::market::{DAYS, DRAWS, SAVES, asking, derives, fetches, items, read, says, series, start};
use crate::order::Order;
use crate::support::{Server, block_on, events, interpreter_tool};

/// Asserts the report of the whole turn, and that its addresses serve it.
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
            ScriptedAnswer::new().call("c3", "render_chart", &arguments.to_string())
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
        let picture = &chart["picture"];
        assert_eq!(picture["mediaType"], "image/png", "{chart}");
        let path = picture["url"].as_str().unwrap().strip_prefix("/v1/").unwrap();
        let png = server
            .request("GET", path)
            .send()
            .await
            .unwrap()
            .bytes()
            .await
            .unwrap();
        assert!(png.starts_with(b"\x89PNG"), "{picture}");
        // The model ran no code.
        assert!(items(&response, "code_interpreter_call").is_empty());
    });
}

#[test]
fn code_without_a_contract_runs_only_where_the_operator_lets_it() {
    let plain = || {
        ScriptedAnswer::new().call(
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
                options.turn.contract = rule;
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
fn a_derivation_that_fails_too_often_is_given_up_and_the_answer_says_so() {
    block_on(async {
        let wrong = || derives("raise ValueError('no')", &[]);
        let answers = vec![fetches(), wrong(), wrong(), wrong(), says("unused")];
        let (server, provider) = start(answers, |options| options.turn.max_attempts = 2).await;
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
fn servers_in_a_request_are_checked_before_any_is_called() {
    block_on(async {
        let (server, provider) = start(Vec::new(), |_| {}).await;
        let never = |mut tool: Value| {
            tool["type"] = json!("mcp");
            tool["require_approval"] = json!("never");
            tool
        };
        for (tool, code, param) in [
            (
                json!({"type": "mcp", "server_label": "market", "require_approval": "sometimes"}),
                "invalid_value",
                "tools[0].require_approval",
            ),
            (
                json!({"type": "mcp", "server_label": "market", "require_approval": {}}),
                "invalid_value",
                "tools[0].require_approval",
            ),
            (
                json!({"type": "mcp", "server_label": "market", "require_approval": {"never": "all"}}),
                "invalid_type",
                "tools[0].require_approval.never",
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
        assert_eq!(got.error(), (400, "unknown_approval_request"));
        assert!(provider.asked().is_empty());
    });
}

#[test]
fn a_response_does_not_repeat_the_headers_for_a_server() {
    block_on(async {
        let (server, _) = start(vec![says("Hi.")], |_| {}).await;
        let tool = json!({"type": "mcp", "server_label": "market", "require_approval": "never",
            "allowed_tools": ["get_net_flow"]});
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
