//! Results of tools in the turns after the one that fetched them.

use std::sync::Arc;

use cellblock_agent::provider::scripted::ScriptedAnswer;
use cellblock_gateway::Options;
use serde_json::{Value, json};

use crate::market::{Market, derives, fetches, items, read, says, start};
use crate::support::{block_on, interpreter_tool};

#[test]
fn the_next_turn_derives_from_data_of_earlier_turns() {
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
fn a_client_can_continue_with_item_ids() {
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
        assert!(
            told.contains("is not the alias of an earlier tool result"),
            "{told}"
        );
    });
}

#[test]
fn a_turn_that_fetches_nothing_runs_code_with_a_contract_and_without() {
    block_on(async {
        let plain = ScriptedAnswer::new().call(
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
