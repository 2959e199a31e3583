//! Turns whose request names a toolset: its tools work where the turn's code runs.

use std::sync::Arc;

use cellblock_agent::provider::Provider;
use cellblock_agent::provider::scripted::{ScriptedAnswer, ScriptedProvider};
use cellblock_gateway::keys::{ConnectorGrant, KeyTerms};
use cellblock_interpreter::cell::Guard;
use cellblock_interpreter::session::SetupSnippet;
use serde_json::{Value, json};

use crate::greeter;
use crate::market::{items, read, says};
use crate::order::Order;
use crate::support::{Server, block_on, events, interpreter_tool, serve_with, types};
use crate::weather::Weather;

async fn start(answers: Vec<ScriptedAnswer>) -> (Server, Arc<ScriptedProvider>) {
    let provider = Arc::new(ScriptedProvider::new(answers));
    let model = Arc::clone(&provider) as Arc<dyn Provider>;
    let server = serve_with(model, |options| options.sessions.toolsets.push(greeter::KIND));
    (server.await, provider)
}

fn toolset(name: &str) -> Value {
    json!({"type": "mcp", "server_label": name, "require_approval": "never"})
}

#[test]
fn an_added_toolset_is_offered_called_and_its_result_is_read_by_the_model() {
    block_on(async {
        let greets = ScriptedAnswer::new().call("c1", "greet", r#"{"name": "Ada"}"#);
        let (server, provider) = start(vec![greets, says("Greeted.")]).await;
        let asking = json!({"input": "Greet Ada", "tools": [toolset("greeter")]});
        let text = server.stream(asking).await.text().await.unwrap();
        let events = events(&text);
        Order::check(&events).unwrap();
        let response = &events.last().unwrap()["response"];
        assert_eq!(response["status"], "completed", "{response}");
        let listed = items(response, "mcp_list_tools")[0];
        assert_eq!(
            (&listed["server_label"], &listed["tools"][0]["name"]),
            (&json!("greeter"), &json!("greet"))
        );
        let call = items(response, "mcp_call")[0];
        let greeting = r#"{"greeting":"Hello Ada"}"#;
        assert_eq!(
            (&call["server_label"], &call["output"], &call["status"]),
            (&json!("greeter"), &json!(greeting), &json!("completed"))
        );
        let first = &provider.asked()[0];
        assert_eq!(first.tools[0].name, "greet");
        assert_eq!(
            first.instructions.as_deref(),
            Some("Greet everybody with `greet`.")
        );
        assert_eq!(read(&provider, 1), [greeting]);
    });
}

#[test]
fn commands_and_code_of_a_turn_share_a_sandbox_and_code_needs_no_contract() {
    block_on(async {
        let code = json!({"code": "open('shared.txt', 'w').write('from code')"}).to_string();
        let command = json!({"command": ["cat", "/workspace/shared.txt"]}).to_string();
        let answers = vec![
            ScriptedAnswer::new().call("c1", "code_interpreter", &code),
            ScriptedAnswer::new().call("c2", "sandbox_exec", &command),
            ScriptedAnswer::new().call("c3", "sandbox_exec", r#"{"command": 1}"#),
            says("Read."),
        ];
        let (server, provider) = start(answers).await;
        let tools = json!([interpreter_tool()[0], toolset("workbench")]);
        let response = server.create(json!({"input": "go", "tools": tools})).await.ok();
        assert_eq!(
            items(&response, "code_interpreter_call")[0]["status"],
            "completed"
        );
        let calls = items(&response, "mcp_call");
        let ran: Value = serde_json::from_str(calls[0]["output"].as_str().unwrap()).unwrap();
        assert_eq!(ran["stdout"], "from code", "{ran}");
        assert_eq!(calls[1]["error"]["type"], "mcp_tool_execution_error");
        assert!(read(&provider, 3)[2].contains("hint"), "{:?}", read(&provider, 3));
    });
}

#[test]
fn a_toolset_that_is_not_there_is_refused_with_those_that_are() {
    block_on(async {
        let (server, _) = start(Vec::new()).await;
        // What `code_interpreter` does is not offered twice.
        for name in ["grater", "interpreter", "derivation", "notebook"] {
            let refused = server
                .create(json!({"input": "go", "tools": [toolset(name)]}))
                .await;
            assert_eq!(refused.error(), (400, "unknown_server"));
            let told = refused.body["error"]["message"].as_str().unwrap();
            assert!(told.contains("there are `workbench`, `greeter`"), "{told}");
        }
    });
}

#[test]
fn code_calls_functions_that_the_model_only_reads_about() {
    block_on(async {
        let code = "weather.get_forecast(city='Kyiv')[0]['high'] * 2";
        let code = json!({ "code": code }).to_string();
        let answers = vec![
            ScriptedAnswer::new().call("c1", "code_interpreter", &code),
            says("42."),
            says("Hello."),
        ];
        let provider = Arc::new(ScriptedProvider::new(answers));
        let model = Arc::clone(&provider) as Arc<dyn Provider>;
        let server = serve_with(model, |options| {
            options.connectors = vec![Weather::named("weather")];
        })
        .await
        .of("local");
        let asking = json!({"input": "go", "tools": interpreter_tool(), "instructions": "Be brief."});
        server.create(asking).await.ok();
        let told = read(&provider, 1);
        assert!(told[0].contains("42"), "{told:?}");
        let asked = provider.asked();
        let tools: Vec<_> = asked[0].tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(tools, ["code_interpreter"]);
        let instructions = asked[0].instructions.as_deref().unwrap();
        assert!(
            instructions.contains("- `weather.get_forecast(city: string)`: Returns a forecast.\n"),
            "{instructions}"
        );
        assert!(instructions.ends_with("\n\nBe brief."), "{instructions}");

        // Without code there is nothing to call.
        server.create(json!({"input": "hello"})).await.ok();
        assert_eq!(provider.asked()[2].instructions, None);
    });
}

#[test]
fn containers_keep_to_the_quotas_of_their_key_and_their_fetches_are_counted() {
    block_on(async {
        let code = "for city in ['Kyiv', 'Lviv', 'Lviv', 'Odesa']: climate.get_forecast(city)";
        let answers = vec![
            ScriptedAnswer::new().call("c1", "code_interpreter", &json!({ "code": code }).to_string()),
            says("Later."),
        ];
        let provider = Arc::new(ScriptedProvider::new(answers));
        let model = Arc::clone(&provider) as Arc<dyn Provider>;
        let server = serve_with(model, |options| {
            options.connectors = vec![Weather::named("climate")];
            options.quotas.fetches_per_minute = Some(2);
            options.metrics.public = true;
        })
        .await;
        let all = ConnectorGrant::new(["*".to_owned()]);
        let keys = &server.gateway().keys;
        let made = keys
            .create(
                "fetcher",
                KeyTerms {
                    connectors: all,
                    ..KeyTerms::default()
                },
            )
            .await;
        let server = server.of(made.unwrap().0.id.leak());
        let asking = json!({"input": "go", "tools": interpreter_tool()});
        server.create(asking).await.ok();
        let told = read(&provider, 1).concat();
        assert!(
            told.contains(
                "RateLimitError: climate.get_forecast: the request was not made: the quota \
                 `fetches_per_minute`"
            ),
            "{told}"
        );
        let metrics = server.metrics().await;
        for (outcome, cached, number) in [("ok", false, 2), ("ok", true, 1), ("rate_limit", false, 1)] {
            let line = format!(
                "cellblock_fetches_total{{connector=\"climate\",function=\"get_forecast\",\
                 outcome=\"{outcome}\",cached=\"{cached}\"}} {number}\n"
            );
            assert!(metrics.contains(&line), "{line}: {metrics}");
        }
        let bytes = r#"[{"city":"Kyiv","high":21}]"#.len() * 2;
        let line = format!("cellblock_fetched_bytes_total{{connector=\"climate\"}} {bytes}\n");
        assert!(metrics.contains(&line), "{line}: {metrics}");
    });
}

#[test]
fn a_container_loads_a_dataset_of_another_one_after_its_model_has_looked() {
    block_on(async {
        let code = |id: &str, code: &str| {
            ScriptedAnswer::new().call(id, "code_interpreter", &json!({ "code": code }).to_string())
        };
        let answers = vec![
            code(
                "c1",
                "publish_dataset(pd.DataFrame({'gdp': [20, 22]}), 'gdp', title='GDP')",
            ),
            says("Published."),
            code("c2", "load_dataset('gdp')['gdp'].sum()"),
            code("c3", "read_dataset('gdp')['title'], load_dataset('gdp')"),
            code("c4", "read_dataset('gdp')['title']"),
            code("c5", "int(load_dataset('gdp')['gdp'].sum())"),
            says("42."),
            code("c6", "list_datasets()"),
            says("None."),
        ];
        let provider = Arc::new(ScriptedProvider::new(answers));
        let model = Arc::clone(&provider) as Arc<dyn Provider>;
        let server = serve_with(model, |options| {
            options.containers.project = Some(format!("macro-{}", std::process::id()));
        })
        .await;
        let asking = || json!({"input": "go", "tools": interpreter_tool()});
        server.create(asking()).await.ok();
        server.create(asking()).await.ok();
        let instructions = provider.asked()[0].instructions.clone().unwrap();
        assert!(
            instructions.contains("call `read_dataset` in an earlier call"),
            "{instructions}"
        );
        for (step, words) in [
            (3, "look at it first"),
            (4, "look at it first"),
            (5, "GDP"),
            (6, "42"),
        ] {
            let told = read(&provider, step);
            let told = told.last().unwrap();
            assert!(told.contains(words), "{step}: {told}");
        }
        server.of("ben").create(asking()).await.ok();
        let told = read(&provider, 8).concat();
        assert!(!told.contains("gdp"), "{told}");
    });
}

#[test]
fn containers_have_the_operators_guard_and_setup_code() {
    block_on(async {
        let code = |code: &str| json!({ "code": code }).to_string();
        let answers = vec![
            ScriptedAnswer::new().call("c1", "code_interpreter", &code("total('20 + 22')")),
            ScriptedAnswer::new().call("c2", "code_interpreter", &code("eval('1')")),
            says("42."),
        ];
        let provider = Arc::new(ScriptedProvider::new(answers));
        let model = Arc::clone(&provider) as Arc<dyn Provider>;
        let server = serve_with(model, |options| {
            options.cells.guard = Guard::Strict;
            options.cells.snippets = vec![SetupSnippet {
                name: "setup.py".to_owned(),
                code: "def total(text): return eval(text)".to_owned(),
                guarded: false,
            }];
        })
        .await;
        let asking = json!({"input": "go", "tools": interpreter_tool()});
        server.create(asking).await.ok();
        let first = read(&provider, 1);
        assert!(first[0].contains("42"), "{first:?}");
        let second = read(&provider, 2).concat();
        assert!(
            second.contains("eval is blocked in strict mode; write the expression itself"),
            "{second}"
        );
    });
}

#[test]
fn a_request_lets_only_code_call_a_server() {
    block_on(async {
        let code = json!({"code": "weather.get_forecast(city='Kyiv')[0]['high'] * 2"}).to_string();
        let answers = vec![
            ScriptedAnswer::new().call("c1", "code_interpreter", &code),
            says("42."),
        ];
        let provider = Arc::new(ScriptedProvider::new(answers));
        let model = Arc::clone(&provider) as Arc<dyn Provider>;
        let server = serve_with(model, |options| {
            options.connectors = vec![Weather::named("weather")];
        })
        .await
        .of("local");
        let asking = |callers: Value, change: Value| {
            let mut tool = json!({
                "type": "mcp", "server_label": "weather", "require_approval": "never",
                "allowed_callers": callers,
            });
            tool.as_object_mut()
                .unwrap()
                .extend(change.as_object().unwrap().clone());
            let mut tools = interpreter_tool();
            tools.as_array_mut().unwrap().push(tool);
            json!({"input": "go", "tools": tools})
        };
        let only_code = json!(["programmatic"]);
        let answer = server.create(asking(only_code.clone(), json!({}))).await.ok();
        assert_eq!(answer["tools"][1]["allowed_callers"], only_code);
        let kinds = types(&answer["output"]);
        assert_eq!(kinds, ["code_interpreter_call", "message"]);
        let told = read(&provider, 1);
        assert!(told.iter().any(|text| text.contains("42")), "{told:?}");
        let asked = format!("{:?}", provider.asked()[1]);
        assert!(asked.contains(r"<fetch_log>\nweather.get_forecast("), "{asked}");
        let asked = provider.asked();
        let tools: Vec<_> = asked[0].tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(tools, ["code_interpreter"]);

        for (request, part) in [
            (
                asking(only_code.clone(), json!({"server_label": "other"})),
                "`offer: code`",
            ),
            (asking(json!(["everyone"]), json!({})), "`everyone`"),
            (asking(json!([]), json!({})), "must list"),
        ] {
            let refused = server.create(request).await;
            assert!(
                refused.body.to_string().contains(part),
                "{part}: {}",
                refused.body
            );
        }
    });
}
