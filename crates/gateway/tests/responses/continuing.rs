//! Conversations that go on from a response before.

use cellblock_agent::provider::scripted::ScriptedAnswer;
use serde_json::{Value, json};

use crate::support::{block_on, interpreter_tool, runs, scripted, told};

fn says(text: &str) -> ScriptedAnswer {
    ScriptedAnswer::new().text(text)
}

#[test]
fn a_model_reads_the_whole_conversation_in_order() {
    block_on(async {
        let (server, provider) = scripted([says("one!"), says("two!"), says("three!")]).await;
        let mut previous = Value::Null;
        for input in ["one?", "two?", "three?"] {
            let response = server
                .create(json!({"input": input, "previous_response_id": previous}))
                .await
                .ok();
            assert_eq!(response["previous_response_id"], previous);
            previous = response["id"].clone();
        }
        let asked = json!(provider.asked()[2].items);
        assert_eq!(
            told(&asked),
            [
                "user: one?",
                "assistant: one!",
                "user: two?",
                "assistant: two!",
                "user: three?"
            ]
        );
    });
}

#[test]
fn hidden_outputs_of_code_stay_known_to_the_model() {
    block_on(async {
        let answers = [runs("c1", "print(40 + 2)"), says("done"), says("again")];
        let (server, provider) = scripted(answers).await;
        let first = server
            .create(json!({"input": "count", "tools": interpreter_tool()}))
            .await
            .ok();
        assert_eq!(first["output"][0]["type"], "code_interpreter_call");
        assert_eq!(first["output"][0]["outputs"], Value::Null);
        server
            .create(json!({"input": "and?", "previous_response_id": first["id"]}))
            .await
            .ok();
        let code = json!({"code": "print(40 + 2)"}).to_string();
        let expected = [
            "user: count".to_owned(),
            format!("function_call: {code}"),
            "function_call_output: 42".to_owned(),
            "assistant: done".to_owned(),
            "user: and?".to_owned(),
        ];
        assert_eq!(told(&json!(provider.asked()[2].items)), expected);
    });
}

#[test]
fn items_that_are_sent_by_their_ids_are_those_that_the_model_made() {
    block_on(async {
        let answers = [
            runs("c1", "print(40 + 2)"),
            says("done"),
            says("again"),
            says("and again"),
        ];
        let (server, provider) = scripted(answers).await;
        let first = server
            .create(json!({"input": "count", "tools": interpreter_tool()}))
            .await
            .ok();
        let (code, message) = (&first["output"][0], &first["output"][1]);
        let expected = [
            "user: count",
            "function_call: {\"code\":\"print(40 + 2)\"}",
            "function_call_output: 42",
            "assistant: done",
            "user: and?",
        ];
        // As the AI SDK sends them, and as the Agents SDK does: whole, but without what the code gave.
        let references = json!([
            {"role": "user", "content": "count"},
            {"type": "item_reference", "id": code["id"]},
            {"type": "item_reference", "id": message["id"]},
            {"role": "user", "content": "and?"},
        ]);
        let whole =
            json!([{"role": "user", "content": "count"}, code, message, {"role": "user", "content": "and?"}]);
        for (turn, input) in [references, whole].into_iter().enumerate() {
            server.create(json!({"input": input})).await.ok();
            assert_eq!(told(&json!(provider.asked()[2 + turn].items)), expected);
        }
        let stranger = server.of("bob");
        let got = stranger
            .create(json!({"input": [{"type": "item_reference", "id": code["id"]}]}))
            .await;
        assert_eq!(got.error(), (404, "item_not_found"));
    });
}

#[test]
fn a_response_that_is_not_there_cannot_be_gone_on_from() {
    block_on(async {
        let (server, _) = scripted([says("kept"), says("not kept")]).await;
        let kept = server.create(json!({"input": "x"})).await.ok();
        let not_kept = server.create(json!({"input": "x", "store": false})).await.ok();
        let go_on = |server: &crate::support::Server, id: &Value| {
            let (server, id) = (server.of("ann"), id.clone());
            async move {
                server
                    .create(json!({"input": "y", "previous_response_id": id}))
                    .await
            }
        };
        let missing = (400, "previous_response_not_found");
        assert_eq!(go_on(&server, &json!("resp_none")).await.error(), missing);
        assert_eq!(go_on(&server, &not_kept["id"]).await.error(), missing);
        let got = server
            .of("bob")
            .create(json!({"input": "y", "previous_response_id": kept["id"]}))
            .await;
        assert_eq!(got.error(), missing);
        let id = kept["id"].as_str().unwrap();
        let deleted = server
            .send(server.request("DELETE", &format!("responses/{id}")))
            .await
            .ok();
        assert_eq!(deleted, json!({"id": id, "object": "response", "deleted": true}));
        assert_eq!(go_on(&server, &kept["id"]).await.error(), missing);
    });
}

#[test]
fn calls_and_outputs_that_do_not_belong_together_are_rejected() {
    block_on(async {
        let call = ScriptedAnswer::new().call("c1", "get_weather", "{}");
        let (server, provider) = scripted([call, says("sunny")]).await;
        let output = |id: &str| json!([{"type": "function_call_output", "call_id": id, "output": "sun"}]);
        let got = server.create(json!({"input": output("c1")})).await;
        assert_eq!(got.error(), (400, "unknown_call_id"));
        let tools = json!([{"type": "function", "name": "get_weather"}]);
        let first = server
            .create(json!({"input": "weather?", "tools": tools}))
            .await
            .ok();
        let got = server
            .create(json!({"input": output("c2"), "previous_response_id": first["id"]}))
            .await;
        assert_eq!(got.error(), (400, "unknown_call_id"));
        // Nor can a call be left unanswered.
        let got = server
            .create(json!({"input": "never mind", "previous_response_id": first["id"]}))
            .await;
        assert_eq!(got.error(), (400, "missing_call_output"));
        let second = server
            .create(json!({"input": output("c1"), "previous_response_id": first["id"]}))
            .await
            .ok();
        assert_eq!(second["output"][0]["content"][0]["text"], "sunny");
        assert_eq!(
            told(&json!(provider.asked()[1].items)),
            ["user: weather?", "function_call: {}", "function_call_output: sun"]
        );
    });
}

#[test]
fn sealed_reasoning_is_carried_both_ways() {
    block_on(async {
        let thinks = ScriptedAnswer::new().reasoning("hm").sealed("opaque").call(
            "c1",
            "code_interpreter",
            "{\"code\": \"1\"}",
        );
        let (server, provider) = scripted([thinks, says("done"), says("again")]).await;
        let response = server
            .create(json!({
                "input": "think", "tools": interpreter_tool(), "store": false,
                "include": ["reasoning.encrypted_content"], "reasoning": {"effort": "low"},
            }))
            .await
            .ok();
        let reasoning = &response["output"][0];
        assert_eq!(
            (&reasoning["type"], &reasoning["encrypted_content"]),
            (&json!("reasoning"), &json!("opaque"))
        );
        assert_eq!(response["reasoning"], json!({"effort": "low", "summary": null}));
        // The model reads it between its own calls, and where the client sends it back.
        assert!(provider.asked()[0].reasoning.sealed);
        assert_eq!(json!(provider.asked()[1].items)[1]["encrypted_content"], "opaque");
        let mut input = response["output"].clone();
        input
            .as_array_mut()
            .unwrap()
            .push(json!({"role": "user", "content": "go on"}));
        server.create(json!({"input": input})).await.ok();
        assert_eq!(json!(provider.asked()[2].items)[0]["encrypted_content"], "opaque");
    });
}
