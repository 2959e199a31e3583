//! Turns whose model calls tools of servers.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cellblock_artifact::{Store, Urls};
use cellblock_interpreter::toolset::ToolDefinition;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::{Echo, Echoes, Stops, TurnRecord, code, play_with, request};
use crate::provider::scripted::{ScriptedAnswer, ScriptedProvider};
use crate::tools::{ConfiguredServer, Tools, sources};
use crate::turn::{ChartIntent, Evidence, Plan, Research, Turn};
use crate::wire::{Ids, Response};
use crate::{OfferedTools, ToolReply, ToolServer, ToolServerError};

/// A server with tools that do as their names say.
#[derive(Debug, Default)]
struct Shelf {
    label: String,
    tools: Vec<&'static str>,
    stops: Arc<Echo>,
    called: AtomicUsize,
}

impl Default for Echo {
    fn default() -> Self {
        Self::new(true)
    }
}

impl ToolServer for Shelf {
    fn label(&self) -> &str {
        &self.label
    }

    fn tools(&self) -> BoxFuture<'_, Result<Arc<OfferedTools>, ToolServerError>> {
        Box::pin(async {
            if self.tools.is_empty() {
                let cause = std::io::Error::other("/usr/bin/secret is gone");
                return Err(ToolServerError::new("the server `shelf` does not answer").caused_by(cause));
            }
            let tools = self.tools.iter().map(|name| ToolDefinition {
                name: (*name).to_owned(),
                description: format!("{name} it"),
                input_schema: json!({"type": "object"}).as_object().unwrap().clone(),
                annotations: name.starts_with("get").then(|| json!({"readOnlyHint": true})),
                ..ToolDefinition::default()
            });
            Ok(Arc::new(OfferedTools {
                tools: tools.collect(),
                left_out: Vec::new(),
            }))
        })
    }

    fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> BoxFuture<'_, Result<ToolReply, ToolServerError>> {
        self.called.fetch_add(1, Ordering::SeqCst);
        let tool = tool.to_owned();
        Box::pin(async move {
            match tool.as_str() {
                "get_long" => Ok(ToolReply::Result(json!({"text": "x".repeat(100_000)}))),
                "fail" => Ok(ToolReply::Failed("no such book".to_owned())),
                "die" => Err(ToolServerError::new("`shelf` ended before it answered")),
                "hang" => {
                    let _stops = Stops(Some(&self.stops));
                    std::future::pending().await
                }
                _ => Ok(ToolReply::Result(json!({"from": self.label, "asked": arguments}))),
            }
        })
    }
}

fn shelf(label: &str, tools: &[&'static str]) -> Arc<Shelf> {
    Arc::new(Shelf {
        label: label.to_owned(),
        tools: tools.to_vec(),
        ..Shelf::default()
    })
}

/// Returns the tools with which a request's turn fetches, with these servers set up.
fn research(change: &Value, servers: &[&Arc<Shelf>], chart_intent: ChartIntent, dir: &Path) -> Research {
    let configured = servers.iter().map(|server| ConfiguredServer {
        server: Arc::clone(server) as Arc<dyn ToolServer>,
        always: true,
    });
    let tools = Tools {
        configured: configured.collect(),
        named: None,
    };
    Research {
        sources: sources(&tools, &[], &request(change)).unwrap(),
        evidence: Evidence::new(Store::local(dir.to_owned()).unwrap(), "resp_1"),
        deriving: None,
        plan: Plan { chart_intent },
        chart_boost: 2,
        tokens: 1000,
        urls: Urls::below("/v1/artifacts").unwrap(),
    }
}

async fn play(change: &Value, servers: &[&Arc<Shelf>], answers: Vec<ScriptedAnswer>) -> TurnRecord {
    let dir = tempfile::tempdir().unwrap();
    let research = research(change, servers, ChartIntent::None, dir.path());
    play_with(Echo::new(false), change, answers, Some(research)).await
}

fn calls(tools: &[(&str, &str)]) -> ScriptedAnswer {
    let numbered = tools.iter().enumerate();
    numbered.fold(ScriptedAnswer::new(), |answer, (at, (tool, arguments))| {
        answer.call(&format!("c{at}"), tool, arguments)
    })
}

/// Items of one type.
fn items<'a>(played: &'a TurnRecord, kind: &str) -> Vec<&'a Value> {
    let items = played.response["output"].as_array().unwrap().iter();
    items.filter(|item| item["type"] == kind).collect()
}

#[tokio::test]
async fn a_tool_is_called_and_its_result_is_kept_whole_and_shown_short() {
    let shelf = shelf("shelf", &["get_book", "get_long"]);
    let first = calls(&[("get_book", r#"{"id":7}"#), ("get_long", "")]);
    let played = play(
        &json!({}),
        &[&shelf],
        vec![first, ScriptedAnswer::new().text("Read.")],
    )
    .await;
    let told = items(&played, "mcp_call");
    let whole: Value = serde_json::from_str(told[0]["output"].as_str().unwrap()).unwrap();
    assert_eq!(whole, json!({"from": "shelf", "asked": {"id": 7}}));
    assert_eq!(
        (&told[0]["status"], &told[0]["error"]),
        (&json!("completed"), &Value::Null)
    );
    assert_eq!(told[0]["arguments"], r#"{"id":7}"#);
    let long = told[1]["output"].as_str().unwrap();
    assert!(long.len() < 10_000, "{}", long.len());
    assert!(
        long.contains("/v1/artifacts/") && long.contains("100011 bytes"),
        "{long}"
    );
    let read: Vec<_> = played
        .results()
        .iter()
        .map(|text| text.as_str().unwrap().to_owned())
        .collect();
    assert!(
        read[0].starts_with("get_book_1") && read[0].contains("shelf"),
        "{}",
        read[0]
    );
    assert!(
        read[1].starts_with("get_long_1") && read[1].len() < 4000,
        "{}",
        read[1]
    );
    // An operator's servers are not listed to the client where they answer.
    assert!(items(&played, "mcp_list_tools").is_empty());
    let report = &played.response["cellblock"];
    assert_eq!(
        (&report["outcome"], &report["gaps"]),
        (&json!("answer"), &json!([]))
    );
    assert_eq!(report["dataset"]["aliases"], json!(["get_book_1", "get_long_1"]));
    let names = played.names();
    let of_call: Vec<_> = names.iter().filter(|name| name.contains("mcp_call.")).collect();
    assert_eq!(of_call.len(), 4, "{names:?}");
}

#[tokio::test]
async fn aliases_are_numbered_in_the_order_of_the_calls() {
    let shelf = shelf("shelf", &["get_book"]);
    let first = calls(&[
        ("get_book", r#"{"id":1}"#),
        ("get_book", r#"{"id":2}"#),
        ("get_book", r#"{"id":3}"#),
    ]);
    let played = play(
        &json!({}),
        &[&shelf],
        vec![first, ScriptedAnswer::new().text("Read.")],
    )
    .await;
    for (at, text) in played.results().iter().enumerate() {
        let text = text.as_str().unwrap();
        let (number, id) = (at + 1, format!("\"id\":{}", at + 1));
        assert!(text.starts_with(&format!("get_book_{number}")), "{text}");
        assert!(text.replace(' ', "").contains(&id), "{text}");
    }
}

#[tokio::test]
async fn what_goes_wrong_with_a_tool_is_told_to_model_and_client_and_the_turn_goes_on() {
    let shelf = shelf("shelf", &["fail", "die", "get_book"]);
    let first = calls(&[
        ("fail", "{}"),
        ("die", "{}"),
        ("get_book", "[1]"),
        ("get_book", r#"{"id":"#),
        ("no_such", "{}"),
        ("get_book", "{}"),
    ]);
    let played = play(
        &json!({}),
        &[&shelf],
        vec![first, ScriptedAnswer::new().text("Done.")],
    )
    .await;
    let read = played.results();
    assert_eq!(read[0], "The tool reported a failure: no such book");
    assert_eq!(
        read[1],
        "The tool returned no result: `shelf` ended before it answered"
    );
    assert_eq!(
        read[2],
        "The tool returned no result: the tool was not called: its arguments must be a JSON object"
    );
    assert!(read[3].as_str().unwrap().contains("are not JSON"), "{}", read[3]);
    assert_eq!(read[4], "There is no tool named `no_such`.");
    assert!(read[5].as_str().unwrap().starts_with("get_book_1"));
    let told: BTreeMap<_, _> = items(&played, "mcp_call")
        .iter()
        .map(|item| (item["id"].to_string(), item["error"].clone()))
        .collect();
    let told: Vec<_> = told.into_values().collect();
    assert_eq!(
        told[0],
        json!({"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": "no such book"}]})
    );
    assert_eq!(told[1]["type"], "mcp_protocol_error");
    assert_eq!(told[2]["code"], -32602);
    assert_eq!(shelf.called.load(Ordering::SeqCst), 3);
    assert_eq!(played.response["status"], "completed");
}

#[tokio::test]
async fn a_server_that_cannot_be_asked_is_told_and_the_others_are_offered() {
    let (gone, shelf) = (shelf("gone", &[]), shelf("shelf", &["get_book"]));
    let played = play(
        &json!({}),
        &[&gone, &shelf],
        vec![ScriptedAnswer::new().text("Hi.")],
    )
    .await;
    let lists = items(&played, "mcp_list_tools");
    assert_eq!(lists.len(), 1);
    assert_eq!(
        (&lists[0]["server_label"], &lists[0]["error"], &lists[0]["tools"]),
        (
            &json!("gone"),
            &json!("the server `shelf` does not answer"),
            &json!([])
        )
    );
    assert!(!played.response.to_string().contains("secret"));
    let offered: Vec<_> = played.asked[0]
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(offered, ["code_interpreter", "get_weather", "get_book"]);
}

#[tokio::test]
async fn tools_of_one_name_are_told_apart_by_their_servers() {
    let (one, two) = (
        shelf("one", &["get_weather", "get.book"]),
        shelf("two", &["get_book"]),
    );
    let first = calls(&[("two__get_book", "{}"), ("get_book", "{}")]);
    let played = play(
        &json!({}),
        &[&one, &two],
        vec![first, ScriptedAnswer::new().text("Both.")],
    )
    .await;
    let offered: Vec<_> = played.asked[0]
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(
        offered,
        [
            "code_interpreter",
            "get_weather",
            "one__get_weather",
            "get_book",
            "two__get_book"
        ]
    );
    let told: Vec<_> = items(&played, "mcp_call")
        .iter()
        .map(|item| (item["server_label"].clone(), item["name"].clone()))
        .collect();
    assert_eq!(
        told,
        [
            (json!("two"), json!("get_book")),
            (json!("one"), json!("get.book"))
        ]
    );
}

fn named(change: &Value) -> Value {
    let mut tool = json!({"type": "mcp", "server_label": "shelf", "require_approval": "never"});
    for (key, value) in change.as_object().unwrap().clone() {
        tool[key] = value;
    }
    json!({"tools": [tool]})
}

#[tokio::test]
async fn a_request_names_a_server_and_is_told_which_of_its_tools_there_are() {
    let shelf = shelf("shelf", &["get_book", "get_long", "fail"]);
    for (allowed, offered) in [
        (json!({}), vec!["get_book", "get_long", "fail"]),
        (json!({"allowed_tools": ["fail", "other"]}), vec!["fail"]),
        (
            json!({"allowed_tools": {"read_only": true}}),
            vec!["get_book", "get_long"],
        ),
        (
            json!({"allowed_tools": {"read_only": false, "tool_names": ["get_book", "fail"]}}),
            vec!["fail"],
        ),
    ] {
        let played = play(
            &named(&allowed),
            &[&shelf],
            vec![ScriptedAnswer::new().text("Hi.")],
        )
        .await;
        let list = items(&played, "mcp_list_tools")[0];
        let listed: Vec<_> = list["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        assert_eq!(listed, offered, "{allowed}");
        let asked: Vec<_> = played.asked[0]
            .tools
            .iter()
            .map(|tool| tool.name.as_str())
            .collect();
        assert_eq!(asked, offered, "{allowed}");
    }
}

#[tokio::test]
async fn a_choice_of_a_server_is_one_of_its_tools() {
    let shelf = shelf("shelf", &["get_book", "fail"]);
    for (choice, asked) in [
        (
            json!({"name": "fail"}),
            json!({"type": "function", "name": "fail"}),
        ),
        (
            json!({}),
            json!({"type": "allowed_tools", "mode": "required", "tools": [
                {"type": "function", "name": "get_book"}, {"type": "function", "name": "fail"}]}),
        ),
        (json!({"name": "no_such"}), json!("auto")),
    ] {
        let mut change = named(&json!({}));
        change["tool_choice"] = json!({"type": "mcp", "server_label": "shelf"});
        for (key, value) in choice.as_object().unwrap().clone() {
            change["tool_choice"][key] = value;
        }
        let played = play(
            &change,
            &[&shelf],
            vec![calls(&[("fail", "{}")]), ScriptedAnswer::new().text("Hi.")],
        )
        .await;
        assert_eq!(json!(played.asked[0].tool_choice), asked);
        // It is forced once.
        assert!(
            !json!(played.asked[1].tool_choice)
                .to_string()
                .contains("required")
        );
    }
}

#[tokio::test]
async fn no_more_tools_are_called_than_the_request_allows() {
    let shelf = shelf("shelf", &["get_book"]);
    let first = calls(&[
        ("get_book", "{}"),
        ("get_book", "{}"),
        ("code_interpreter", &code("1")),
    ]);
    let played = play(
        &json!({"max_tool_calls": 1}),
        &[&shelf],
        vec![first, ScriptedAnswer::new().text("Hi.")],
    )
    .await;
    assert_eq!(shelf.called.load(Ordering::SeqCst), 1);
    assert!(played.ran.is_empty());
    assert!(
        played.results()[1]
            .as_str()
            .unwrap()
            .contains("no calls are left")
    );
}

#[tokio::test]
async fn a_turn_without_an_answer_says_what_there_is_and_what_is_missing() {
    let shelf = shelf("shelf", &["get_book"]);
    let again = || calls(&[("get_book", "{}")]);
    let played = play(&json!({}), &[&shelf], vec![again(), again(), again()]).await;
    assert_eq!(played.response["status"], "incomplete");
    assert_eq!(played.response["incomplete_details"]["reason"], "max_steps");
    let report = &played.response["cellblock"];
    assert_eq!(report["outcome"], "best_effort");
    assert_eq!(report["stop_reason"], "bounded_runtime_budget");
    assert_eq!(
        report["gaps"],
        json!([{"code": "step_budget_exhausted",
            "message": "the turn ended after 3 steps, before an answer was complete"}])
    );
    let text = items(&played, "message")[0]["content"][0]["text"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        text.starts_with("No answer was completed.") && text.contains("get_book_3"),
        "{text}"
    );
    assert!(
        text.ends_with(
            "- `step_budget_exhausted`: the turn ended after 3 steps, before an answer was complete"
        ),
        "{text}"
    );
}

#[tokio::test]
async fn a_chart_that_was_asked_for_is_asked_for_again_once() {
    let shelf = shelf("shelf", &["get_book"]);
    let change = json!({});
    let dir = tempfile::tempdir().unwrap();
    let research = research(&change, &[&shelf], ChartIntent::Explicit, dir.path());
    let answers = vec![
        ScriptedAnswer::new().text("Here."),
        ScriptedAnswer::new().text("It cannot be drawn."),
    ];
    let played = play_with(Echo::new(false), &change, answers, Some(research)).await;
    let notice = played.asked[1].items.last().unwrap();
    assert!(
        json!(notice)
            .to_string()
            .contains("asked for a chart and none was emitted")
    );
    let report = &played.response["cellblock"];
    assert_eq!(report["gaps"][0]["code"], "chart_missing");
    assert_eq!(played.response["status"], "completed");
}

#[tokio::test]
async fn views_share_their_budget_at_every_step() {
    let shelf = shelf("shelf", &["get_long"]);
    let all: Vec<_> = std::iter::repeat_n(("get_long", "{}"), 30).collect();
    let played = play(
        &json!({}),
        &[&shelf],
        vec![calls(&all), ScriptedAnswer::new().text("Read.")],
    )
    .await;
    let read = played.results();
    let chars: usize = read.iter().map(|text| text.as_str().unwrap().len()).sum();
    assert!(chars <= 4000, "{chars}");
    for (at, text) in read.iter().enumerate() {
        let alias = format!("get_long_{}", at + 1);
        assert!(text.as_str().unwrap().starts_with(&alias), "{text}");
    }
}

#[tokio::test]
async fn a_client_that_is_gone_stops_the_tool() {
    let shelf = shelf("shelf", &["hang"]);
    let change = json!({});
    let dir = tempfile::tempdir().unwrap();
    let research = research(&change, &[&shelf], ChartIntent::None, dir.path());
    let provider = Arc::new(ScriptedProvider::new(vec![calls(&[("hang", "{}")])]));
    let request = request(&change);
    let response = Response::new(&request, "resp_1".to_owned(), 1);
    let turn = Turn::new(provider, Arc::new(Echoes(Arc::new(Echo::new(false)))))
        .research(Some(research))
        .ids(Ids::counted());
    let (sender, mut receiver) = mpsc::channel(1);
    let running = tokio::spawn(async move { turn.run(&request, response, Vec::new(), sender).await });
    while let Some(event) = receiver.recv().await {
        if event.frame().contains("mcp_call_arguments.done") {
            break;
        }
    }
    while shelf.called.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    drop(receiver);
    running.await.unwrap();
    assert_eq!(shelf.stops.stops.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn deferred_tools_of_a_server_are_found_and_called() {
    let server = shelf("shelf", &["get_book", "get_long"]);
    let change = json!({"tools": [
        {"type": "mcp", "server_label": "shelf", "server_description": "Books.", "require_approval": "never",
         "defer_loading": true},
        {"type": "tool_search"},
    ]});
    let answers = vec![
        ScriptedAnswer::new().call("c1", "get_book", "{}"),
        ScriptedAnswer::new().call("c2", "tool_search", "{\"query\": \"book\", \"limit\": 1}"),
        ScriptedAnswer::new().call("c3", "get_book", "{}"),
    ];
    let played = play(&change, &[&server], answers).await;
    let offered = |step: usize| -> Vec<&str> {
        let tools = played.asked[step].tools.iter();
        tools.map(|tool| tool.name.as_str()).collect()
    };
    assert_eq!(offered(0), ["tool_search"]);
    let about = played.asked[0].tools[0].description.clone().unwrap();
    assert!(about.contains("\n- `shelf` (2 tools): Books."), "{about}");
    assert_eq!(offered(2), ["tool_search", "get_book"]);
    let output = played.response["output"].as_array().unwrap().iter();
    let found = output
        .clone()
        .find(|item| item["type"] == "tool_search_output")
        .unwrap();
    assert_eq!(
        (
            &found["tools"][0]["server_label"],
            &found["tools"][0]["allowed_tools"]
        ),
        (&json!("shelf"), &json!(["get_book"]))
    );
    assert_eq!(output.filter(|item| item["type"] == "mcp_call").count(), 1);
    assert_eq!(server.called.load(Ordering::SeqCst), 1);
}
