//! Code that calls the client's tools: it waits while the client answers.

use cellblock_agent::provider::scripted::ScriptedAnswer;
use serde_json::{Value, json};

use super::{after, ask, assembled, blocks, body, kinds, stream, tool};
use crate::market::{read, says};
use crate::support::{block_on, runs, scripted};

const PRICE: &str = "price = tools.get_price(symbol='ABC')\nprint(price['usd'] * 2)";

fn tools(version: &str) -> Value {
    json!([tool(version), {
        "name": "get_price", "description": "Returns a price.",
        "allowed_callers": [format!("code_execution_{version}")],
        "input_schema": {"type": "object", "properties": {"symbol": {"type": "string"}},
            "required": ["symbol"]},
    }])
}

fn result(call: &Value) -> Value {
    json!([{"type": "tool_result", "tool_use_id": call["id"], "content": "{\"usd\": 42}"}])
}

#[test]
fn code_calls_a_tool_of_the_client_and_goes_on_with_its_result() {
    block_on(async {
        let answers = |id: &str| [runs(id, PRICE), says("84.")];
        let all = answers("c1").into_iter().chain(answers("c2"));
        let (server, provider) = scripted(all.chain([says("Yes.")])).await;
        for (version, streams) in [("20260120", false), ("20250825", true)] {
            let request = json!({ "tools": tools(version) });
            let first = if streams {
                assembled(&stream(&server, request).await)
            } else {
                ask(&server, request).await
            };
            assert_eq!(first["stop_reason"], "tool_use");
            assert_eq!(kinds(&first), ["server_tool_use", "tool_use"], "{first}");
            let (code, call) = (&first["content"][0], &first["content"][1]);
            assert_eq!(call["name"], "get_price");
            assert_eq!(call["input"], json!({"symbol": "ABC"}));
            assert_eq!(
                call["caller"],
                json!({"type": format!("code_execution_{version}"), "tool_id": code["id"]})
            );
            let container = first["container"]["id"].clone();
            let messages = after(&first, &result(call));
            // What only counts does not go on with the code.
            let counted =
                body(&json!({"tools": tools(version), "messages": messages, "container": container}));
            server.post("messages/count_tokens", &counted).await.ok();
            let request = json!({"tools": tools(version), "messages": messages, "container": container});
            let second = if streams {
                assembled(&stream(&server, request).await)
            } else {
                ask(&server, request).await
            };
            assert_eq!(kinds(&second), ["code_execution_tool_result", "text"], "{second}");
            assert_eq!(second["content"][0]["tool_use_id"], code["id"]);
            assert_eq!(second["content"][0]["content"]["stdout"], "84\n");
            assert_eq!(second["container"]["id"], container);
            assert_eq!(second["stop_reason"], "end_turn");
            if streams {
                let mut messages = messages.clone();
                let all = messages.as_array_mut().unwrap();
                all.push(json!({"role": "assistant", "content": second["content"]}));
                all.push(json!({"role": "user", "content": "Sure?"}));
                let fields = json!({"tools": tools(version), "messages": messages, "container": container});
                assert_eq!(blocks(&ask(&server, fields).await, "text")[0]["text"], "Yes.");
                let items = json!(provider.asked().last().unwrap().items);
                assert!(items.to_string().contains("84"), "{items}");
            }
        }
        assert!(read(&provider, 1)[0].contains("84"));
        let offered: Vec<_> = provider.asked()[0]
            .tools
            .iter()
            .map(|tool| tool.name.clone())
            .collect();
        assert!(!offered.contains(&"get_price".to_owned()), "{offered:?}");
    });
}

#[test]
fn code_that_does_not_wait_any_more_is_named() {
    block_on(async {
        let (server, _) = scripted([runs("c1", PRICE), ScriptedAnswer::new()]).await;
        let first = ask(&server, json!({ "tools": tools("20260120") })).await;
        let call = &blocks(&first, "tool_use")[0];
        let messages = after(&first, &result(call));
        let of_eve = server.of("eve");
        let refused = of_eve
            .post(
                "messages",
                &body(&json!({"tools": tools("20260120"), "messages": messages})),
            )
            .await;
        assert_eq!(refused.status, 400);
        let message = refused.body["error"]["message"].as_str().unwrap();
        assert!(message.contains("does not wait"), "{message}");
    });
}
