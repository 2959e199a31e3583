//! Providers that fail: each is an error or a result that the model can repair, and never a hung stream.

use std::sync::Arc;
use std::time::Duration;

use cellblock_agent::provider::chat::ChatCompletions;
use cellblock_agent::provider::scripted::{ScriptedAnswer, ScriptedProvider};
use cellblock_agent::provider::{Provider, ProviderEndpoint, ProviderError, Retries};
use serde_json::{Value, json};

use crate::order::Order;
use crate::support::{block_on, events, interpreter_tool, names, runs, scripted, serve, serve_with};

fn failures() -> [(ProviderError, u16, &'static str); 6] {
    let reported = |message: &str| ProviderError::Reported {
        message: message.to_owned(),
        code: None,
    };
    let status = |status, message: &str| ProviderError::Status {
        status,
        message: message.to_owned(),
        retry_after: None,
    };
    [
        (ProviderError::Cut, 500, "server_error"),
        (
            ProviderError::Timeout {
                waited: "no answer",
                limit: Duration::from_secs(1),
            },
            500,
            "server_error",
        ),
        (
            ProviderError::Malformed {
                what: "it is HTML".to_owned(),
            },
            500,
            "server_error",
        ),
        (status(429, "slow down"), 429, "rate_limit_exceeded"),
        (
            status(400, "This model's maximum context length is 8 tokens"),
            400,
            "context_length_exceeded",
        ),
        (
            reported("context_length_exceeded"),
            400,
            "context_length_exceeded",
        ),
    ]
}

#[test]
fn a_provider_that_fails_before_it_says_anything_is_an_http_error() {
    block_on(async {
        for (failure, status, code) in failures() {
            let words = failure.to_string();
            let (server, _) = scripted([ScriptedAnswer::new().fails(failure)]).await;
            let got = server.create(json!({"input": "x"})).await;
            assert_eq!(got.error(), (status, code), "{words}");
        }
    });
}

#[test]
fn a_provider_that_fails_in_a_stream_ends_it_with_the_error() {
    block_on(async {
        for (failure, _, code) in failures() {
            let words = failure.to_string();
            let (server, _) = scripted([ScriptedAnswer::new().text("half").fails(failure)]).await;
            let stream = server.stream(json!({"input": "x"})).await;
            let events = events(&stream.text().await.unwrap());
            Order::check(&events).unwrap();
            let [.., error, failed] = &events[..] else {
                panic!("{events:?}")
            };
            // Both forms of the error, for clients of either kind.
            assert_eq!(
                (&error["code"], &error["error"]["code"]),
                (&json!(code), &json!(code)),
                "{words}"
            );
            assert_eq!(failed["response"]["error"]["code"], code);
            let id = failed["response"]["id"].as_str().unwrap();
            assert_eq!(
                server.get(&format!("responses/{id}")).await.ok(),
                failed["response"]
            );
        }
    });
}

#[test]
fn the_output_of_a_failed_response_is_returned() {
    block_on(async {
        let (server, _) = scripted([ScriptedAnswer::new().text("half").fails(ProviderError::Cut)]).await;
        let response = server.create(json!({"input": "x"})).await.ok();
        assert_eq!(response["status"], "failed");
        assert_eq!(response["output"][0]["content"][0]["text"], "half");
    });
}

#[test]
fn a_conversation_that_is_too_long_is_cut_where_that_is_allowed() {
    block_on(async {
        let long = || ProviderError::Reported {
            message: "maximum context length".to_owned(),
            code: None,
        };
        let answers = [
            ScriptedAnswer::new().fails(long()),
            ScriptedAnswer::new().text("ok"),
        ];
        let (server, provider) = scripted(answers).await;
        let input = json!([{"role": "user", "content": "old"}, {"role": "user", "content": "new"}]);
        let response = server
            .create(json!({"input": input, "truncation": "auto"}))
            .await
            .ok();
        assert_eq!(
            (&response["status"], &response["truncation"]),
            (&json!("completed"), &json!("auto"))
        );
        assert_eq!(provider.asked()[1].items.len(), 1);
    });
}

#[test]
fn an_unreachable_provider_is_reported_without_its_address() {
    block_on(async {
        let retries = Retries {
            count: 1,
            first_wait: Duration::from_millis(1),
            max_wait: Duration::from_millis(1),
        };
        let endpoint = ProviderEndpoint::new("http://127.0.0.1:1/v1", None)
            .unwrap()
            .retries(retries);
        let server = serve(Arc::new(ChatCompletions::new(endpoint)) as Arc<dyn Provider>).await;
        let got = server.create(json!({"input": "x"})).await;
        assert_eq!(got.error(), (500, "server_error"));
        assert_eq!(got.body["error"]["type"], "model_error");
        assert!(!got.body.to_string().contains("127.0.0.1"));
        let stream = server.stream(json!({"input": "x"})).await;
        let events = events(&stream.text().await.unwrap());
        assert_eq!(
            names(&events),
            [
                "response.created",
                "response.in_progress",
                "error",
                "response.failed"
            ]
        );
    });
}

#[test]
fn a_model_that_calls_for_ever_comes_to_an_end() {
    block_on(async {
        let provider = Arc::new(ScriptedProvider::new((0..9).map(|_| runs("c1", "1"))));
        let server = serve_with(Arc::clone(&provider) as Arc<dyn Provider>, |options| {
            options.turn.max_steps = 3;
        })
        .await;
        let response = server
            .create(json!({"input": "x", "tools": interpreter_tool()}))
            .await
            .ok();
        assert_eq!(
            (&response["status"], &response["incomplete_details"]["reason"]),
            (&json!("incomplete"), &json!("max_steps"))
        );
        assert_eq!(provider.asked().len(), 3);
        // And can be gone on from.
        let next = server
            .create(
                json!({"input": "y", "tools": interpreter_tool(), "previous_response_id": response["id"]}),
            )
            .await
            .ok();
        assert_eq!(next["status"], "incomplete");
    });
}

#[test]
fn broken_arguments_and_tools_that_are_not_there_are_results_for_the_model() {
    block_on(async {
        let answers = [
            ScriptedAnswer::new().call("c1", "code_interpreter", "{\"code\": \"1"),
            ScriptedAnswer::new().call("c2", "browse", "{}"),
            ScriptedAnswer::new().text("sorry"),
        ];
        let (server, provider) = scripted(answers).await;
        let response = server
            .create(json!({"input": "x", "tools": interpreter_tool()}))
            .await
            .ok();
        assert_eq!(response["status"], "completed");
        assert_eq!(response["output"][0]["status"], "failed");
        let items = json!(provider.asked()[2].items);
        let results: Vec<&Value> = items
            .as_array()
            .unwrap()
            .iter()
            .filter(|item| item["type"] == "function_call_output")
            .map(|item| &item["output"])
            .collect();
        assert!(results[0].as_str().unwrap().starts_with("The code was not run: "));
        assert_eq!(results[1], "There is no tool named `browse`.");
    });
}
