//! Programs in JavaScript that call the client's functions: they run again when the client has answered.

use std::sync::Arc;
use std::time::Duration;

use cellblock_agent::provider::Provider;
use cellblock_agent::provider::scripted::{ScriptedAnswer, ScriptedProvider};
use cellblock_gateway::Options;
use cellblock_gateway::records::Records;
use serde_json::{Value, json};

use crate::market::{items, read, says};
use crate::order::Order;
use crate::support::{Server, block_on, events, gateway, listen, scripted, serve_with, types};

const SUM: &str = "const [a, b] = await Promise.all(['A', 'B'].map((sku) => tools.price({ sku })));\n\
                   text(a.eur + b.eur);";

fn tools() -> Value {
    json!([
        {"type": "programmatic_tool_calling"},
        {"type": "function", "name": "price", "description": "Returns a price.",
         "parameters": {"type": "object", "properties": {"sku": {"type": "string"}}},
         "output_schema": {"type": "object", "properties": {"eur": {"type": "number"}}},
         "allowed_callers": ["programmatic"]},
    ])
}

fn asking(fields: &Value) -> Value {
    let mut asking = json!({"input": "Sum of A and B?", "tools": tools()});
    asking
        .as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    asking
}

fn runs(id: &str, code: &str) -> ScriptedAnswer {
    let arguments = json!({"code": code}).to_string();
    ScriptedAnswer::new().call(id, "programmatic_tool_calling", &arguments)
}

/// An output of a call, as OpenAI's clients send it.
fn output(call: &Value, output: &str) -> Value {
    json!({"type": "function_call_output", "call_id": call["call_id"], "output": output,
           "caller": call["caller"]})
}

/// Outputs of a response's calls.
fn outputs(response: &Value, answers: &[&str]) -> Vec<Value> {
    let calls = items(response, "function_call");
    assert_eq!(calls.len(), answers.len(), "{response}");
    calls
        .iter()
        .zip(answers)
        .map(|(call, answer)| output(call, answer))
        .collect()
}

fn answering(response: &Value, outputs: &[Value]) -> Value {
    asking(&json!({"previous_response_id": response["id"], "input": outputs}))
}

/// The input of a client that keeps the conversation itself.
fn replaying(response: &Value, outputs: &[Value]) -> Value {
    let user = json!({"role": "user", "content": "Sum of A and B?"});
    let output = response["output"].as_array().unwrap().iter();
    let input: Vec<_> = [&user].into_iter().chain(output).chain(outputs).collect();
    asking(&json!({"input": input, "store": false}))
}

#[test]
fn a_program_calls_functions_and_the_model_reads_what_it_shows() {
    block_on(async {
        let (server, provider) = scripted([runs("c1", SUM), says("It is 5."), says("Yes.")]).await;
        let first = server.create(asking(&json!({}))).await.ok();
        assert_eq!(first["status"], "completed");
        assert_eq!(
            types(&first["output"]),
            ["program", "function_call", "function_call"]
        );
        let program = items(&first, "program")[0];
        assert_eq!(
            (&program["code"], &program["call_id"]),
            (&json!(SUM), &json!("c1"))
        );
        let call = items(&first, "function_call")[0];
        assert_eq!(call["caller"], json!({"type": "program", "caller_id": "c1"}));
        assert_eq!(call["arguments"], r#"{"sku":"A"}"#);
        assert_eq!(first["tools"][0], json!({"type": "programmatic_tool_calling"}));

        let answers = outputs(&first, &[r#"{"eur":2}"#, r#"{"eur":3}"#]);
        let second = server.create(answering(&first, &answers)).await.ok();
        assert_eq!(types(&second["output"]), ["program_output", "message"]);
        let ended = items(&second, "program_output")[0];
        assert_eq!(
            (&ended["result"], &ended["status"], &ended["call_id"]),
            (&json!("5"), &json!("completed"), &json!("c1"))
        );
        // The model sees one call with one result.
        assert_eq!(
            provider.asked()[1].items.len(),
            3,
            "{:?}",
            provider.asked()[1].items
        );
        assert_eq!(read(&provider, 1), ["5"]);

        let third = asking(&json!({"previous_response_id": second["id"], "input": "Sure?"}));
        server.create(third).await.ok();
        assert_eq!(provider.asked()[2].items.len(), 5);
        let path = format!("responses/{}/input_items", second["id"].as_str().unwrap());
        let listed = server.get(&path).await.ok();
        assert!(
            listed["data"].to_string().contains("\"caller_id\":\"c1\""),
            "{listed}"
        );
    });
}

#[test]
fn a_program_that_waits_continues_after_a_restart_with_items_of_the_client_alone() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("records.sqlite");
        let start = async |answers: Vec<ScriptedAnswer>| {
            let provider = Arc::new(ScriptedProvider::new(answers)) as Arc<dyn Provider>;
            listen(gateway(provider, Options::default(), Records::open(&path).unwrap()).await).await
        };
        let later = "const a = await tools.price({ sku: 'A' });\n\
                     const b = await tools.price({ sku: 'B', at: Date.now() });\n\
                     text(a.eur + b.eur);";
        let server = start(vec![runs("c1", later)]).await;
        let first = server.create(asking(&json!({"store": false}))).await.ok();
        let one = outputs(&first, &[r#"{"eur":2}"#]);
        drop(server);

        // More calls of the same program, from another gateway.
        let server = start(Vec::new()).await;
        let second = server.create(replaying(&first, &one)).await.ok();
        assert_eq!(types(&second["output"]), ["function_call"]);
        let stolen = server.of("bob").create(replaying(&first, &one)).await;
        assert_eq!(stolen.error(), (400, "invalid_fingerprint"));
        drop(server);

        let server = start(vec![says("It is 5.")]).await;
        let mut both = one.clone();
        both.extend(second["output"].as_array().unwrap().clone());
        both.extend(outputs(&second, &[r#"{"eur":3}"#]));
        let third = server.create(replaying(&first, &both)).await.ok();
        assert_eq!(types(&third["output"]), ["program_output", "message"]);
        assert_eq!(items(&third, "program_output")[0]["result"], "5");
    });
}

#[test]
fn answers_that_do_not_fit_a_program_are_rejected_and_it_still_waits() {
    block_on(async {
        let (server, _) = scripted([runs("c1", SUM), says("It is 5.")]).await;
        let first = server.create(asking(&json!({}))).await.ok();
        let good = outputs(&first, &[r#"{"eur":2}"#, r#"{"eur":3}"#]);
        let mut foreign = good.clone();
        foreign[0]["caller"]["caller_id"] = json!("c9");
        let mut unknown = good.clone();
        unknown[0]["call_id"] = json!("call_9");
        let user = json!({"role": "user", "content": "?"});
        for (input, code) in [
            (vec![good[0].clone()], "missing_call_output"),
            (
                vec![good[0].clone(), good[1].clone(), good[1].clone()],
                "duplicate_call_output",
            ),
            (foreign, "invalid_value"),
            (unknown, "unknown_call_id"),
            (vec![good[0].clone(), good[1].clone(), user], "invalid_value"),
            (Vec::new(), "missing_call_output"),
        ] {
            let refused = server.create(answering(&first, &input)).await;
            assert_eq!(refused.error(), (400, code), "{input:?}");
        }
        let mut without = answering(&first, &good);
        without["tools"].as_array_mut().unwrap().remove(0);
        without["tools"][0]["allowed_callers"] = json!(["direct"]);
        let refused = server.create(without).await;
        assert_eq!(refused.error(), (400, "invalid_value"));
        let mut changed = replaying(&first, &good);
        changed["input"][1]["code"] = json!("text('other')");
        let refused = server.create(changed).await;
        assert_eq!(refused.error(), (400, "invalid_fingerprint"));
        let ended = server.create(answering(&first, &good)).await.ok();
        assert_eq!(items(&ended, "program_output")[0]["result"], "5");
    });
}

#[test]
fn a_program_that_fails_is_reported_to_the_model_and_the_client() {
    block_on(async {
        let provider = Arc::new(ScriptedProvider::new([
            runs("c1", "text('kept'); missing()"),
            runs("c2", "while (true) {}"),
            runs("c3", "await new Promise(() => {})"),
            says("Sorry."),
        ]));
        let model = Arc::clone(&provider) as Arc<dyn Provider>;
        let change = |options: &mut Options| options.max_cell_timeout = Duration::from_secs(6);
        let server = serve_with(model, change).await;
        let response = server.create(asking(&json!({}))).await.ok();
        assert_eq!(response["status"], "completed");
        let ended = items(&response, "program_output");
        assert_eq!(ended.len(), 3);
        for (output, reason) in ended.iter().zip([
            "kept\n[error] ReferenceError: missing is not defined (line 1)",
            "ran longer than",
            "never happens",
        ]) {
            assert_eq!(output["status"], "incomplete");
            assert!(output["result"].as_str().unwrap().contains(reason), "{output}");
        }
        assert_eq!(read(&provider, 3).len(), 3);
    });
}

#[test]
fn a_stream_has_whole_programs_and_their_calls_in_order() {
    block_on(async {
        let (server, _) = scripted([runs("c1", SUM), says("It is 5.")]).await;
        let text = server.stream(asking(&json!({}))).await.text().await.unwrap();
        let told = events(&text);
        Order::check(&told).unwrap();
        let added = told
            .iter()
            .find(|event| event["type"] == "response.output_item.added");
        assert_eq!(added.unwrap()["item"]["code"], SUM);
        let first = &told.last().unwrap()["response"];
        let answers = outputs(first, &[r#"{"eur":2}"#, r#"{"eur":3}"#]);
        let text = server
            .stream(answering(first, &answers))
            .await
            .text()
            .await
            .unwrap();
        let told = events(&text);
        Order::check(&told).unwrap();
        let second = &told.last().unwrap()["response"];
        assert_eq!(types(&second["output"]), ["program_output", "message"]);
    });
}

#[test]
fn a_conversation_keeps_a_program_that_waits() {
    block_on(async {
        let (server, provider) = scripted([runs("c1", SUM), says("It is 5."), says("Hello.")]).await;
        let conversation = server.post("conversations", &json!({})).await.ok();
        let of = |input: Value| asking(&json!({"conversation": conversation["id"], "input": input}));
        let first = server.create(of(json!("go"))).await.ok();
        let missing = server.create(of(json!("And?"))).await;
        assert_eq!(missing.error(), (400, "missing_call_output"));
        let answers = outputs(&first, &[r#"{"eur":2}"#, r#"{"eur":3}"#]);
        let second = server.create(of(json!(answers))).await.ok();
        assert_eq!(items(&second, "program_output")[0]["result"], "5");
        server.create(of(json!("Hi"))).await.ok();
        assert_eq!(
            provider.asked()[2].items.len(),
            5,
            "{:?}",
            provider.asked()[2].items
        );
    });
}

#[test]
fn a_function_and_a_program_are_answered_together() {
    block_on(async {
        let both = runs("c1", SUM).call("c2", "weather", "{}");
        let (server, provider) = scripted([both, says("It is 5.")]).await;
        let mut tools = tools();
        tools
            .as_array_mut()
            .unwrap()
            .push(json!({"type": "function", "name": "weather"}));
        let first = server.create(asking(&json!({"tools": tools}))).await.ok();
        let calls = items(&first, "function_call");
        let outputs: Vec<_> = calls
            .iter()
            .map(|call| {
                output(
                    call,
                    if call["name"] == "weather" {
                        "sunny"
                    } else {
                        r#"{"eur":2}"#
                    },
                )
            })
            .collect();
        let mut second = answering(&first, &outputs);
        second["tools"] = tools;
        let second = server.create(second).await.ok();
        assert_eq!(items(&second, "program_output")[0]["result"], "4");
        let mut results = read(&provider, 1);
        results.sort();
        assert_eq!(results, ["4", "sunny"]);
    });
}

#[test]
fn programs_are_rejected_by_name_where_they_cannot_run() {
    block_on(async {
        let off = |options: &mut Options| options.code_interpreter = false;
        let provider = Arc::new(ScriptedProvider::new([])) as Arc<dyn Provider>;
        let server: Server = serve_with(provider, off).await;
        let refused = server.create(asking(&json!({}))).await;
        assert_eq!(refused.error(), (400, "unsupported_tool"));
        assert_eq!(refused.body["error"]["param"], "tools[0].type");
        let mut twice = asking(&json!({}));
        twice["tools"][1] = twice["tools"][0].clone();
        let refused = server.create(twice).await;
        assert_eq!(refused.error(), (400, "invalid_value"));
    });
}
