//! Chat Completions: the loop of the Responses API behind OpenAI's older form.

use cellblock_agent::provider::ProviderError;
use cellblock_agent::provider::scripted::ScriptedAnswer;
use serde_json::{Value, json};

use crate::support::{Server, block_on, frames, runs, scripted, serve_with, types};

/// The interpreter as a chat request names it.
fn interpreter() -> Value {
    json!([{"type": "code_interpreter"}])
}

fn user(text: &str) -> Value {
    json!([{"role": "user", "content": text}])
}

fn body(mut fields: Value) -> Value {
    fields["model"] = json!("m");
    fields
}

async fn ask(server: &Server, fields: Value) -> Value {
    server.post("chat/completions", &body(fields)).await.ok()
}

/// The chunks of a stream that ends as streams have to.
async fn stream(server: &Server, fields: Value) -> Vec<Value> {
    let mut body = body(fields);
    body["stream"] = json!(true);
    let answer = server
        .request("POST", "chat/completions")
        .body(body.to_string())
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let text = answer.text().await.unwrap();
    frames(&text)
        .map(|frame| serde_json::from_str(frame.strip_prefix("data: ").unwrap()).unwrap())
        .collect()
}

/// The message that chunks come to, and why it ends.
fn assembled(chunks: &[Value]) -> (Value, Value) {
    let mut message = json!({"content": "", "tool_calls": [], "annotations": []});
    let mut reason = Value::Null;
    for (place, chunk) in chunks.iter().enumerate() {
        assert_eq!(chunk["object"], "chat.completion.chunk");
        assert_eq!((&chunk["id"], &chunk["model"]), (&chunks[0]["id"], &json!("m")));
        let Some(choice) = chunk["choices"].get(0) else {
            continue;
        };
        let delta = &choice["delta"];
        assert_eq!(delta["role"] == "assistant", place == 0, "{chunk}");
        assert_eq!(reason, Value::Null, "something comes after the end: {chunk}");
        reason = choice["finish_reason"].clone();
        if let Some(text) = delta["content"].as_str() {
            message["content"] = json!(message["content"].as_str().unwrap().to_owned() + text);
        }
        for fragment in delta["tool_calls"].as_array().into_iter().flatten() {
            let calls = message["tool_calls"].as_array_mut().unwrap();
            let index = usize::try_from(fragment["index"].as_u64().unwrap()).unwrap();
            if index == calls.len() {
                let mut call = fragment.clone();
                call.as_object_mut().unwrap().remove("index");
                calls.push(call);
                continue;
            }
            let arguments = &mut calls[index]["function"]["arguments"];
            let more = fragment["function"]["arguments"].as_str().unwrap();
            *arguments = json!(arguments.as_str().unwrap().to_owned() + more);
        }
        if delta["annotations"].is_array() {
            message["annotations"] = delta["annotations"].clone();
        }
    }
    (message, reason)
}

#[test]
fn code_runs_inside_and_the_client_sees_an_ordinary_completion() {
    block_on(async {
        let answers = || {
            let code = runs("c1", "print(6 * 7)");
            [
                code,
                ScriptedAnswer::new().reasoning("hm").text("It is forty-two."),
            ]
        };
        let (server, provider) = scripted(answers().into_iter().chain(answers())).await;
        let fields = json!({"messages": user("6 * 7?"), "tools": interpreter()});
        let whole = ask(&server, fields.clone()).await;
        assert_eq!(whole["object"], "chat.completion");
        assert!(whole["id"].as_str().unwrap().starts_with("chatcmpl-"));
        let choice = &whole["choices"][0];
        assert_eq!(
            *choice,
            json!({"index": 0, "finish_reason": "stop", "logprobs": null, "message": {
                "role": "assistant", "content": "It is forty-two.", "refusal": null, "annotations": [],
                "reasoning_content": "hm",
            }})
        );
        // Both model calls count.
        let tokens = whole["usage"]["completion_tokens"].as_u64().unwrap();
        assert!(tokens > 3, "{whole}");
        assert_eq!(whole["usage"]["total_tokens"], tokens);
        // The code ran, and the model has read what it printed.
        let asked = json!(provider.asked()[1].items);
        assert_eq!(asked[2]["type"], "function_call_output");
        assert!(asked[2].to_string().contains("42"), "{asked}");

        let chunks = stream(&server, fields).await;
        let (message, reason) = assembled(&chunks);
        assert_eq!(
            (&message["content"], &reason),
            (&choice["message"]["content"], &json!("stop"))
        );
        assert!(chunks.iter().all(|chunk| chunk.get("usage").is_none()));
        let texts = chunks
            .iter()
            .filter(|chunk| chunk["choices"][0]["delta"]["content"] != "");
        assert!(texts.count() > 3, "{chunks:?}");
    });
}

#[test]
fn a_stream_ends_with_the_usage_where_it_is_wanted() {
    block_on(async {
        let (server, _) = scripted([ScriptedAnswer::new().text("hello")]).await;
        let wanted = json!({"messages": user("x"), "stream_options": {"include_usage": true}});
        let chunks = stream(&server, wanted).await;
        let (last, before) = chunks.split_last().unwrap();
        assert!(
            before
                .iter()
                .all(|chunk| chunk["usage"].is_null() && chunk.get("usage").is_some())
        );
        assert_eq!(last["choices"], json!([]));
        assert_eq!(last["usage"]["completion_tokens"], 1);
    });
}

#[test]
fn functions_are_handed_to_the_client_and_their_results_to_the_model() {
    block_on(async {
        let calls = || {
            ScriptedAnswer::new()
                .text("Let me look.")
                .call("c1", "weather", r#"{"city": "Rome", "days": 12345}"#)
                .call("c2", "weather", r#"{"city": "Oslo"}"#)
        };
        let (server, provider) = scripted([calls(), calls(), ScriptedAnswer::new().text("Sunny.")]).await;
        let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
        let tools = json!([
            {"type": "function", "function": {"name": "weather", "description": "d",
                "parameters": schema, "strict": true}},
            {"type": "code_interpreter"},
        ]);
        let chosen = json!({"type": "function", "function": {"name": "weather"}});
        let fields = json!({"messages": user("x"), "tools": tools, "tool_choice": chosen,
            "parallel_tool_calls": false});
        let whole = ask(&server, fields.clone()).await;
        let choice = &whole["choices"][0];
        assert_eq!(choice["finish_reason"], "tool_calls");
        let expected = json!([
            {"id": "c1", "type": "function", "function": {"name": "weather",
                "arguments": r#"{"city": "Rome", "days": 12345}"#}},
            {"id": "c2", "type": "function", "function": {"name": "weather",
                "arguments": r#"{"city": "Oslo"}"#}},
        ]);
        assert_eq!(choice["message"]["tool_calls"], expected);
        assert_eq!(choice["message"]["content"], "Let me look.");
        let asked = &provider.asked()[0];
        assert_eq!(
            json!(asked.tool_choice),
            json!({"type": "function", "name": "weather"})
        );
        assert!(!asked.parallel_tool_calls);
        assert_eq!(asked.tools[0].strict, Some(true));
        assert_eq!(json!(asked.tools[0].parameters), schema);

        let (message, reason) = assembled(&stream(&server, fields).await);
        assert_eq!(
            (&message["tool_calls"], &reason),
            (&expected, &json!("tool_calls"))
        );

        let mut messages = user("x");
        messages.as_array_mut().unwrap().extend([
            choice["message"].clone(),
            json!({"role": "tool", "tool_call_id": "c1", "content": "sunny"}),
            json!({"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "rain"}]}),
        ]);
        let last = ask(&server, json!({"messages": messages, "tools": tools})).await;
        assert_eq!(last["choices"][0]["message"]["content"], "Sunny.");
        let items = json!(provider.asked()[2].items);
        let kinds = types(&items);
        assert_eq!(
            kinds,
            [
                "message",
                "message",
                "function_call",
                "function_call",
                "function_call_output",
                "function_call_output"
            ]
        );
        assert_eq!(
            (&items[4]["output"], &items[5]["output"]),
            (&json!("sunny"), &json!("rain"))
        );
    });
}

#[test]
fn requested_settings_reach_the_model() {
    block_on(async {
        let (server, provider) = scripted([ScriptedAnswer::new().text("{}")]).await;
        let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
        let picture = "data:image/png;base64,AA==";
        ask(
            &server,
            json!({
                "messages": [
                    {"role": "system", "content": "be brief"},
                    {"role": "developer", "content": [{"type": "text", "text": "be kind"}]},
                    {"role": "user", "content": [
                        {"type": "text", "text": "look"},
                        {"type": "image_url", "image_url": {"url": picture, "detail": "low"}},
                    ]},
                    {"role": "assistant", "content": "well"},
                    {"role": "system", "content": "hurry"},
                    {"role": "user", "content": "now", "name": "ann"},
                ],
                "response_format": {"type": "json_schema",
                    "json_schema": {"name": "a", "strict": true, "schema": schema}},
                "temperature": 0.5, "top_p": 0.25, "max_tokens": 9, "max_completion_tokens": 7,
                "stop": "END", "seed": -3,
                "presence_penalty": 1, "frequency_penalty": -1, "reasoning_effort": "low", "n": 1,
                "store": false,
                "logprobs": false, "user": "u-1", "prediction": {"of": "tomorrow"}, "tools": [],
            }),
        )
        .await;
        let asked = provider.asked().remove(0);
        assert_eq!(asked.instructions.as_deref(), Some("be brief\n\nbe kind"));
        let items = json!(asked.items);
        assert_eq!(
            items[0]["content"][1],
            json!({"type": "input_image", "image_url": picture, "file_id": null, "detail": "low"})
        );
        let roles: Vec<_> = items
            .as_array()
            .unwrap()
            .iter()
            .map(|item| &item["role"])
            .collect();
        assert_eq!(roles, ["user", "assistant", "system", "user"]);
        assert_eq!(
            json!(asked.text.format),
            json!({"type": "json_schema", "name": "a", "description": null, "schema": schema, "strict": true})
        );
        let sampling = &asked.sampling;
        assert_eq!((sampling.temperature, sampling.top_p), (Some(0.5), Some(0.25)));
        assert_eq!(
            (sampling.presence_penalty, sampling.frequency_penalty),
            (Some(1.0), Some(-1.0))
        );
        assert_eq!((asked.max_output_tokens, sampling.seed), (Some(7), Some(-3)));
        assert_eq!(sampling.stop, ["END"]);
        assert_eq!(asked.reasoning.effort.as_deref(), Some("low"));
        // Nobody asked for it.
        assert_eq!(asked.tools, []);
    });
}

#[test]
fn the_interpreter_is_offered_to_every_chat_only_where_the_configuration_says_so() {
    block_on(async {
        for on in [false, true] {
            let provider = std::sync::Arc::new(cellblock_agent::provider::scripted::ScriptedProvider::new([
                ScriptedAnswer::new().text("a"),
                ScriptedAnswer::new().text("b"),
            ]));
            let server = serve_with(provider.clone(), |options| options.chat_interpreter = on).await;
            ask(&server, json!({"messages": user("x")})).await;
            assert_eq!(provider.asked()[0].tools.len(), usize::from(on));
            // It is never there twice.
            ask(&server, json!({"messages": user("x"), "tools": interpreter()})).await;
            assert_eq!(provider.asked()[1].tools.len(), 1);
            let own = json!([{"type": "function", "function": {"name": "code_interpreter"}}]);
            let clash = server
                .post(
                    "chat/completions",
                    &body(json!({"messages": user("x"), "tools": own})),
                )
                .await;
            assert_eq!(clash.status, if on { 400 } else { 500 }, "{}", clash.body);
        }
    });
}

#[test]
fn files_of_code_are_linked_by_the_addresses_of_their_content() {
    block_on(async {
        let code =
            "open('/mnt/data/a.csv', 'w').write('x\\n1\\n')\nopen('/mnt/data/b.png', 'wb').write(b'not one')";
        let said = "Überall: [the table](sandbox:/mnt/data/a.csv), as you wanted.";
        let answers = || {
            [
                ScriptedAnswer::new().text("First I compute.").call(
                    "c1",
                    "code_interpreter",
                    &json!({"code": code}).to_string(),
                ),
                ScriptedAnswer::new().text(said),
            ]
        };
        let (server, _) = scripted(answers().into_iter().chain(answers())).await;
        let fields = json!({"messages": user("x"), "tools": interpreter()});
        let whole = ask(&server, fields.clone()).await;
        let message = &whole["choices"][0]["message"];
        let (streamed, _) = assembled(&stream(&server, fields).await);
        for message in [message, &streamed] {
            let text = message["content"].as_str().unwrap();
            let characters: Vec<char> = text.chars().collect();
            let cited: Vec<_> = message["annotations"]
                .as_array()
                .unwrap()
                .iter()
                .map(|it| &it["url_citation"])
                .collect();
            assert_eq!(cited.len(), 2, "{message}");
            let range = |cited: &Value| -> String {
                let place = |key: &str| usize::try_from(cited[key].as_u64().unwrap()).unwrap();
                characters[place("start_index")..place("end_index")]
                    .iter()
                    .collect()
            };
            let (table, picture) = (
                cited[0]["url"].as_str().unwrap(),
                cited[1]["url"].as_str().unwrap(),
            );
            assert_eq!(
                text,
                format!(
                    "First I compute.\n\nÜberall: [the table]({table}), as you wanted.\n\n![b.png]({picture})"
                )
            );
            assert_eq!(
                (range(cited[0]).as_str(), range(cited[1])),
                (table, format!("![b.png]({picture})"))
            );
            let got = server
                .request("GET", table.strip_prefix("/v1/").unwrap())
                .send()
                .await
                .unwrap();
            assert_eq!(got.text().await.unwrap(), "x\n1\n");
        }
    });
}

#[test]
fn an_answer_in_json_is_json_whatever_code_has_made() {
    block_on(async {
        let code = "open('/mnt/data/a.csv', 'w').write('x')";
        let answers = || {
            let first = ScriptedAnswer::new().text("{\"thinking\": true}");
            [
                first.call("c1", "code_interpreter", &json!({"code": code}).to_string()),
                ScriptedAnswer::new().text("{\"sum\": 3}"),
            ]
        };
        let (server, _) = scripted(answers().into_iter().chain(answers())).await;
        let fields = json!({"messages": user("x"), "tools": interpreter(),
            "response_format": {"type": "json_object"}});
        let whole = ask(&server, fields.clone()).await;
        assert_eq!(whole["choices"][0]["message"]["content"], "{\"sum\": 3}");
        let (streamed, _) = assembled(&stream(&server, fields).await);
        assert_eq!(streamed["content"], "{\"sum\": 3}");
    });
}

#[test]
fn a_provider_that_fails_is_an_error_at_once_and_in_a_stream() {
    block_on(async {
        let refused = || ProviderError::Status {
            status: 429,
            message: "slow down".to_owned(),
            retry_after: None,
        };
        let failing = || ScriptedAnswer::new().text("so").fails(refused());
        let (server, _) = scripted([failing(), failing()]).await;
        let got = server
            .post("chat/completions", &body(json!({"messages": user("x")})))
            .await;
        assert_eq!(got.error(), (429, "rate_limit_exceeded"));
        let chunks = stream(&server, json!({"messages": user("x")})).await;
        let error = &chunks.last().unwrap()["error"];
        assert_eq!(
            (&error["type"], &error["code"]),
            (&json!("too_many_requests"), &json!("rate_limit_exceeded"))
        );
        assert!(
            chunks
                .iter()
                .all(|chunk| chunk["choices"][0]["finish_reason"].is_null())
        );
    });
}

#[test]
fn unsupported_fields_are_rejected_by_name() {
    block_on(async {
        let (server, _) = scripted([]).await;
        let call = json!({"role": "assistant", "tool_calls": [{"id": "c", "type": "function",
            "function": {"name": "f", "arguments": "{}"}}]});
        let function = json!({"name": "f"});
        for (fields, param) in [
            (json!({}), "messages"),
            (json!({"messages": []}), "messages"),
            (json!({"messages": "hi"}), "messages"),
            (json!({"messages": [{"role": "user"}]}), "messages[0].content"),
            (
                json!({"messages": [{"role": "robot", "content": "x"}]}),
                "messages[0].role",
            ),
            (
                json!({"messages": [{"role": "function", "name": "f", "content": "x"}]}),
                "messages[0].role",
            ),
            (
                json!({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}),
                "messages[0].content[0].type",
            ),
            (
                json!({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}),
                "messages[0].content[0].image_url",
            ),
            (
                json!({"messages": [{"role": "tool", "tool_call_id": "c", "content": "x"}]}),
                "messages[0].tool_call_id",
            ),
            (json!({"messages": [call]}), "messages"),
            (json!({"messages": user("x"), "n": 2}), "n"),
            (json!({"messages": user("x"), "store": true}), "store"),
            (
                json!({"messages": user("x"), "functions": [function]}),
                "functions",
            ),
            (
                json!({"messages": user("x"), "function_call": "auto"}),
                "function_call",
            ),
            (json!({"messages": user("x"), "logprobs": true}), "logprobs"),
            (
                json!({"messages": user("x"), "logit_bias": {"1": 2}}),
                "logit_bias",
            ),
            (
                json!({"messages": user("x"), "modalities": ["text", "audio"]}),
                "modalities",
            ),
            (json!({"messages": user("x"), "seed": 0.5}), "seed"),
            (
                json!({"messages": user("x"), "stop": ["a", "b", "c", "d", "e"]}),
                "stop",
            ),
            (
                json!({"messages": user("x"), "tools": [{"type": "function", "name": "f"}]}),
                "tools[0].function",
            ),
            (
                json!({"messages": user("x"), "tools": [{"type": "mcp"}]}),
                "tools[0].type",
            ),
            (
                json!({"messages": user("x"), "tool_choice": {"type": "function", "function": function}}),
                "tool_choice.function.name",
            ),
            (
                json!({"messages": user("x"), "response_format": {"type": "json_schema"}}),
                "response_format.json_schema",
            ),
            (json!({"messages": user("x"), "model": 7}), "model"),
        ] {
            let mut fields = fields;
            if fields.get("model").is_none() {
                fields["model"] = json!("m");
            }
            let got = server.post("chat/completions", &fields).await;
            assert_eq!(
                (got.status, &got.body["error"]["param"]),
                (400, &json!(param)),
                "{}",
                got.body
            );
            assert_eq!(got.body["error"]["type"], "invalid_request_error");
        }
        let unknown = server
            .post(
                "chat/completions",
                &json!({"model": "nobody", "messages": user("x")}),
            )
            .await;
        assert_eq!(unknown.error().1, "model_not_found");
        let stored = server.get("chat/completions/chatcmpl-1").await;
        assert_eq!(stored.error(), (404, "chat_completions_not_stored"));
    });
}
