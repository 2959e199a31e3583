//! Code that calls the client's functions: it waits while the client answers.

use std::sync::Arc;
use std::time::Duration;

use cellblock_agent::provider::Provider;
use cellblock_agent::provider::scripted::{ScriptedAnswer, ScriptedProvider};
use cellblock_gateway::Options;
use cellblock_testkit::wait::until_ok;
use serde_json::{Value, json};

use crate::market::{items, read, says};
use crate::order::Order;
use crate::support::{Server, block_on, events, interpreter_tool, runs, scripted, serve_with, types};

const PRICE: &str = "price = tools.get_price(symbol='ABC')\nprice['usd'] * 2";

/// The interpreter, and functions that only code calls.
fn tools() -> Value {
    let mut tools = interpreter_tool();
    for name in ["get_price", "get_stock"] {
        tools.as_array_mut().unwrap().push(json!({
            "type": "function", "name": name, "description": "Returns a number.",
            "allowed_callers": ["programmatic"],
            "parameters": {"type": "object", "properties": {"symbol": {"type": "string"}},
                "required": ["symbol"]},
        }));
    }
    tools
}

fn asking(fields: &Value) -> Value {
    let mut asking = json!({"input": "go", "tools": tools()});
    asking
        .as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    asking
}

fn output(call: &Value, output: &str) -> Value {
    json!({"type": "function_call_output", "call_id": call["call_id"], "output": output})
}

/// A request with outputs of a response's calls.
fn answering(response: &Value, outputs: &Value) -> Value {
    asking(&json!({"previous_response_id": response["id"], "input": outputs}))
}

async fn with(
    answers: impl IntoIterator<Item = ScriptedAnswer>,
    change: impl FnOnce(&mut Options),
) -> (Server, Arc<ScriptedProvider>) {
    let provider = Arc::new(ScriptedProvider::new(answers));
    let model = Arc::clone(&provider) as Arc<dyn Provider>;
    (serve_with(model, change).await, provider)
}

async fn delete(server: &Server, path: &str) {
    server.send(server.request("DELETE", path)).await.ok();
}

/// Waits until no container is held.
async fn released(server: &Server) {
    until_ok(async || {
        let listed = server.get("containers").await.ok();
        let running = listed["data"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|it| it["status"] == "running");
        match running.count() {
            0 => Ok(()),
            _ => Err(listed.to_string()),
        }
    })
    .await;
}

#[test]
fn code_goes_on_when_the_client_has_answered_its_call() {
    block_on(async {
        let (server, provider) = scripted([runs("c1", PRICE), says("84.")]).await;
        let first = server.create(asking(&json!({}))).await.ok();
        assert_eq!(first["status"], "completed");
        let code = items(&first, "code_interpreter_call")[0];
        assert_eq!(
            (&code["status"], &code["code"]),
            (&json!("interpreting"), &json!(PRICE))
        );
        let call = items(&first, "function_call")[0];
        assert_eq!(call["name"], "get_price");
        assert_eq!(call["status"], "completed");
        assert_eq!(call["arguments"], r#"{"symbol":"ABC"}"#);
        assert_eq!(
            call["caller"],
            json!({"type": "program", "caller_id": code["id"]})
        );
        assert_eq!(first["tools"][1]["allowed_callers"], json!(["programmatic"]));

        let mut asked = answering(&first, &json!([output(call, r#"{"usd": 42}"#)]));
        // To count its tokens does not take the code, which waits for the answer itself.
        let mut counted = asked.clone();
        counted["model"] = json!("m");
        let counted = server.post("responses/input_tokens", &counted).await.ok();
        assert_eq!(counted["object"], "response.input_tokens");
        asked["include"] = json!(["code_interpreter_call.outputs"]);
        let second = server.create(asked).await.ok();
        assert_eq!(second["status"], "completed");
        let ended = items(&second, "code_interpreter_call")[0];
        assert_eq!(
            (&ended["id"], &ended["status"], &ended["container_id"]),
            (&code["id"], &json!("completed"), &code["container_id"])
        );
        assert!(ended["outputs"].to_string().contains("84"), "{ended}");
        assert_eq!(items(&second, "message")[0]["content"][0]["text"], "84.");

        let asked = provider.asked();
        let offered: Vec<_> = asked[0].tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(offered, ["code_interpreter"]);
        let instructions = asked[0].instructions.as_deref().unwrap();
        assert!(
            instructions.contains("- `tools.get_price(symbol: string)`: Returns a number."),
            "{instructions}"
        );
        // The model sees one call of code with one result.
        assert_eq!(asked[1].items.len(), 3, "{:?}", asked[1].items);
        assert!(read(&provider, 1)[0].contains("84"));
    });
}

#[test]
fn a_turn_goes_on_in_later_responses_with_the_variables_of_its_code() {
    block_on(async {
        let answers = [
            runs("c1", PRICE),
            says("84."),
            runs("c2", "price['usd'] + 1"),
            says("43."),
            says("That."),
        ];
        let (server, provider) = scripted(answers).await;
        let first = server.create(asking(&json!({}))).await.ok();
        let call = items(&first, "function_call")[0];
        let second = answering(&first, &json!([output(call, r#"{"usd": 42}"#)]));
        let second = server.create(second).await.ok();
        let third = asking(&json!({"previous_response_id": second["id"], "input": "And one more?"}));
        let third = server.create(third).await.ok();
        assert_eq!(
            items(&third, "code_interpreter_call")[0]["container_id"],
            items(&first, "code_interpreter_call")[0]["container_id"],
        );
        assert!(read(&provider, 3).concat().contains("43"));
        // Items are found by their ids, and are complete.
        let id = &items(&first, "code_interpreter_call")[0]["id"];
        let reference =
            json!({"input": [{"type": "item_reference", "id": id}, {"role": "user", "content": "?"}]});
        server.create(reference).await.ok();
        let asked = &provider.asked()[4].items;
        assert_eq!(asked.len(), 3, "{asked:?}");
    });
}

#[test]
fn calls_at_the_same_time_come_together_and_later_ones_in_another_response() {
    block_on(async {
        let code = "import asyncio, concurrent.futures as cf\n\
                    async def both():\n    return await asyncio.gather(tools.get_price.aio(symbol='A'), \
                    tools.get_stock.aio(symbol='A'))\n\
                    price, stock = await both()\n\
                    with cf.ThreadPoolExecutor(3) as pool:\n    more = list(pool.map(lambda it: \
                    tools.get_price(symbol=it), 'BCD'))\n\
                    price * stock + sum(more)";
        let (server, provider) = scripted([runs("c1", code), says("Done.")]).await;
        let first = server.create(asking(&json!({}))).await.ok();
        let calls = items(&first, "function_call");
        let mut names: Vec<_> = calls.iter().map(|call| call["name"].as_str().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names, ["get_price", "get_stock"]);
        let outputs: Vec<_> = calls.iter().map(|call| output(call, "6")).collect();

        // All of them are needed.
        let some = server.create(answering(&first, &json!([outputs[0]]))).await;
        assert_eq!(some.error(), (400, "missing_call_output"));
        let twice = json!([outputs[0], outputs[1], outputs[1]]);
        let twice = server.create(answering(&first, &twice)).await;
        assert_eq!(twice.error(), (400, "duplicate_call_output"));
        let mut more = outputs.clone();
        more.push(json!({"role": "user", "content": "?"}));
        let more = server.create(answering(&first, &json!(more))).await;
        assert_eq!(more.error(), (400, "invalid_value"));

        let mut response = server.create(answering(&first, &json!(outputs))).await.ok();
        // Threads of a busy machine may be too far apart for one response.
        let mut answered = 0;
        while !items(&response, "function_call").is_empty() {
            let calls = items(&response, "function_call");
            answered += calls.len();
            assert_eq!(
                items(&response, "code_interpreter_call")[0]["status"],
                "interpreting"
            );
            let outputs: Vec<_> = calls.iter().map(|call| output(call, "2")).collect();
            let next = server.create(answering(&response, &json!(outputs))).await.ok();
            // What is answered does not wait any more.
            let again = server.create(answering(&response, &json!(outputs))).await;
            assert_eq!(again.error(), (400, "unknown_call_id"));
            response = next;
        }
        assert_eq!(answered, 3);
        assert_eq!(
            items(&response, "code_interpreter_call")[0]["status"],
            "completed"
        );
        assert!(read(&provider, 1).concat().contains("42"));
    });
}

#[test]
fn a_stream_tells_the_calls_of_code_in_order() {
    block_on(async {
        let (server, _) = scripted([runs("c1", PRICE), says("84.")]).await;
        let text = server.stream(asking(&json!({}))).await.text().await.unwrap();
        let told = events(&text);
        Order::check(&told).unwrap();
        let first = &told.last().unwrap()["response"];
        let done = told
            .iter()
            .find(|event| event["type"] == "response.function_call_arguments.done");
        assert_eq!(done.unwrap()["arguments"], r#"{"symbol":"ABC"}"#);
        let call = items(first, "function_call")[0];
        let asked = answering(first, &json!([output(call, r#"{"usd": 42}"#)]));
        let text = server.stream(asked).await.text().await.unwrap();
        let told = events(&text);
        Order::check(&told).unwrap();
        let second = &told.last().unwrap()["response"];
        assert_eq!(items(second, "code_interpreter_call")[0]["status"], "completed");
    });
}

#[test]
fn clients_that_keep_conversations_themselves_send_everything_back() {
    block_on(async {
        let answers = [runs("c1", PRICE), says("84."), says("Hello.")];
        let (server, provider) = scripted(answers).await;
        let own = |input: &Value| asking(&json!({"input": input, "store": false}));
        let user = json!({"role": "user", "content": "go"});
        let mut input = json!([user]);
        let first = server.create(own(&input)).await.ok();
        let list = |input: &mut Value, items: &Value| {
            let items = items.as_array().unwrap().clone();
            input.as_array_mut().unwrap().extend(items);
        };
        list(&mut input, &first["output"]);
        let call = items(&first, "function_call")[0];
        list(&mut input, &json!([output(call, r#"{"usd": 42}"#)]));
        // Another client's call is not known.
        let stolen = server.of("bob").create(own(&input)).await;
        assert_eq!(stolen.error(), (400, "unknown_call_id"));
        let second = server.create(own(&input)).await.ok();
        assert_eq!(items(&second, "code_interpreter_call")[0]["status"], "completed");
        assert_eq!(provider.asked()[1].items.len(), 3);
        list(&mut input, &second["output"]);
        list(&mut input, &json!([{"role": "user", "content": "Hi"}]));
        server.create(own(&input)).await.ok();
        let asked = &provider.asked()[2].items;
        let calls = asked.iter().filter(|item| {
            json!(item)["type"] == "function_call_output" || json!(item)["type"] == "function_call"
        });
        assert_eq!(calls.count(), 0, "the code is one item: {asked:?}");
        assert_eq!(asked.len(), 4, "{asked:?}");
    });
}

#[test]
fn a_conversation_has_the_code_once_it_has_ended() {
    block_on(async {
        let answers = [runs("c1", PRICE), says("84."), says("Hello.")];
        let (server, provider) = scripted(answers).await;
        let conversation = server.post("conversations", &json!({})).await.ok();
        let of = |input: Value| asking(&json!({"conversation": conversation["id"], "input": input}));
        let first = server.create(of(json!("go"))).await.ok();
        let call = items(&first, "function_call")[0];
        let missing = server.create(of(json!("And?"))).await;
        assert_eq!(missing.error(), (400, "missing_call_output"));
        server
            .create(of(json!([output(call, r#"{"usd": 42}"#)])))
            .await
            .ok();
        server.create(of(json!("Hi"))).await.ok();
        let asked = &provider.asked()[2].items;
        // The question, the code with its result, the answer, and another question.
        assert_eq!(asked.len(), 5, "{asked:?}");
        let path = format!(
            "conversations/{}/items?order=asc",
            conversation["id"].as_str().unwrap()
        );
        let listed = server.get(&path).await.ok();
        let kinds = types(&listed["data"]);
        assert_eq!(
            kinds,
            [
                "message",
                "function_call",
                "function_call_output",
                "code_interpreter_call",
                "message",
                "message",
                "message"
            ]
        );
    });
}

#[test]
fn a_conversation_has_commands_behind_waiting_code_once_they_have_ended() {
    block_on(async {
        let both = runs("c1", PRICE).call("c2", "shell", r#"{"commands": ["echo a"]}"#);
        let (server, _) = scripted([both, says("84.")]).await;
        let conversation = server.post("conversations", &json!({})).await.ok();
        let mut tools = tools();
        let shell = json!({"type": "shell", "environment": {"type": "container_auto"}});
        tools.as_array_mut().unwrap().push(shell);
        let of = |input: Value| {
            asking(&json!({"conversation": conversation["id"], "input": input, "tools": tools}))
        };
        let commands = async || {
            let id = conversation["id"].as_str().unwrap();
            let path = format!("conversations/{id}/items?order=asc");
            let listed = server.get(&path).await.ok();
            let kinds = types(&listed["data"]).into_iter().map(str::to_owned);
            kinds
                .filter(|kind| kind.starts_with("shell_call"))
                .collect::<Vec<_>>()
        };
        let first = server.create(of(json!("go"))).await.ok();
        assert_eq!(items(&first, "shell_call").len(), 1);
        assert_eq!(commands().await, Vec::<String>::new());
        let call = items(&first, "function_call")[0];
        let answer = json!([output(call, r#"{"usd": 42}"#)]);
        let second = server.create(of(answer)).await.ok();
        assert_eq!(
            items(&second, "shell_call_output")[0]["output"][0]["stdout"],
            "a\n"
        );
        assert_eq!(commands().await, ["shell_call", "shell_call_output"]);
    });
}

#[test]
fn background_responses_wait_for_the_client_too() {
    block_on(async {
        let (server, provider) = scripted([runs("c1", PRICE), says("84.")]).await;
        let queued = server.create(asking(&json!({"background": true}))).await.ok();
        let first = server.until(queued["id"].as_str().unwrap(), "completed").await;
        let call = items(&first, "function_call")[0];
        let mut asked = answering(&first, &json!([output(call, r#"{"usd": 42}"#)]));
        asked["background"] = json!(true);
        let queued = server.create(asked).await.ok();
        let second = server.until(queued["id"].as_str().unwrap(), "completed").await;
        assert_eq!(items(&second, "code_interpreter_call")[0]["status"], "completed");
        assert!(read(&provider, 1)[0].contains("84"));
    });
}

#[test]
fn code_gets_an_error_if_its_client_never_answers() {
    block_on(async {
        let code = "import cellblock, pathlib\n\
                    try:\n    tools.get_price(symbol='A')\n\
                    except cellblock.TimeoutError as error:\n    \
                    pathlib.Path(f'{len(str(error))}.txt').write_text(str(error))";
        let (server, provider) = with([runs("c1", code), says("Sorry.")], |options| {
            options.responses.function_timeout = Duration::from_millis(300);
            options.containers.idle_timeout = Duration::from_secs(30);
        })
        .await;
        let first = server.create(asking(&json!({}))).await.ok();
        let call = items(&first, "function_call")[0];
        let container = items(&first, "code_interpreter_call")[0]["container_id"]
            .as_str()
            .unwrap();
        let code = json!({"input": "Why?", "previous_response_id": first["id"], "tools": tools()});
        // Until its time is over.
        let next = until_ok(async || {
            let answer = server.create(code.clone()).await;
            match answer.status {
                200 => Ok(answer.body),
                _ => Err(answer.body.to_string()),
            }
        })
        .await;
        assert_eq!(next["status"], "completed");
        let told = read(&provider, 1).concat();
        assert!(told.contains("it was stopped"), "{told}");
        let late = server
            .create(answering(&first, &json!([output(call, "1")])))
            .await;
        assert_eq!(late.error(), (400, "unknown_call_id"));
        // The code has come to its end, and its file is kept.
        let message = "tools.get_price: the user's application did not answer in time";
        let path = format!("/mnt/data/{}.txt", message.len());
        let files = format!("containers/{container}/files");
        until_ok(async || {
            let listed = server.get(&files).await.ok();
            if listed["data"][0]["path"] == path {
                Ok(())
            } else {
                Err(listed.to_string())
            }
        })
        .await;
    });
}

#[test]
fn a_container_whose_code_waits_is_not_idle() {
    block_on(async {
        let (server, provider) = with([runs("c1", PRICE), says("84.")], |options| {
            options.containers.idle_timeout = Duration::from_millis(200);
        })
        .await;
        let first = server.create(asking(&json!({}))).await.ok();
        let call = items(&first, "function_call")[0];
        tokio::time::sleep(Duration::from_secs(1)).await;
        let asked = answering(&first, &json!([output(call, r#"{"usd": 42}"#)]));
        let second = server.create(asked).await.ok();
        assert_eq!(items(&second, "code_interpreter_call")[0]["status"], "completed");
        assert!(read(&provider, 1)[0].contains("84"));
    });
}

#[test]
fn a_deleted_container_interrupts_the_code_that_waits_in_it() {
    block_on(async {
        let (server, provider) = scripted([runs("c1", PRICE), says("Sorry.")]).await;
        let first = server.create(asking(&json!({}))).await.ok();
        let call = items(&first, "function_call")[0];
        let container = items(&first, "code_interpreter_call")[0]["container_id"]
            .as_str()
            .unwrap();
        delete(&server, &format!("containers/{container}")).await;
        let asked = answering(&first, &json!([output(call, "1")]));
        let second = server.create(asked).await.ok();
        assert_eq!(items(&second, "code_interpreter_call")[0]["status"], "incomplete");
        let told = read(&provider, 1).concat();
        assert!(told.contains("interrupted"), "{told}");
    });
}

#[test]
fn a_deleted_response_stops_its_code() {
    block_on(async {
        let (server, _) = with([runs("c1", PRICE)], |options| {
            options.containers.idle_timeout = Duration::from_millis(100);
        })
        .await;
        let first = server.create(asking(&json!({}))).await.ok();
        let call = items(&first, "function_call")[0];
        delete(&server, &format!("responses/{}", first["id"].as_str().unwrap())).await;
        let late = server
            .create(asking(&json!({"input": [output(call, "1")]})))
            .await;
        assert_eq!(late.error(), (400, "unknown_call_id"));
        released(&server).await;
    });
}

#[test]
fn a_gateway_that_stops_waits_for_no_client() {
    block_on(async {
        let (server, _) = scripted([runs("c1", PRICE)]).await;
        let first = server.create(asking(&json!({}))).await.ok();
        assert_eq!(items(&first, "function_call").len(), 1);
        let gateway = server.gateway();
        gateway.stop();
        gateway.tasks.close();
        tokio::time::timeout(Duration::from_secs(20), gateway.tasks.wait())
            .await
            .unwrap();
    });
}

#[test]
fn functions_of_code_need_code() {
    block_on(async {
        let (server, provider) = scripted([]).await;
        let function = json!({"type": "function", "name": "f", "allowed_callers": ["programmatic"]});
        let without = json!({"input": "go", "tools": [function]});
        let refused = server.create(without).await;
        assert_eq!(refused.error(), (400, "invalid_value"));
        let message = refused.body["error"]["message"].as_str().unwrap();
        assert!(message.contains("no `code_interpreter`"), "{message}");
        let mut forced = asking(&json!({}));
        forced["tool_choice"] = json!({"type": "function", "name": "get_price"});
        let refused = server.create(forced).await;
        assert!(
            refused.body.to_string().contains("only code can call"),
            "{}",
            refused.body
        );
        assert!(provider.asked().is_empty());
    });
}
