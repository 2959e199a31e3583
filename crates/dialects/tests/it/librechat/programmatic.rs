//! Code that calls tools of the client.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{CodeApi, code_api, named};
use crate::support::block_on;

const STEP: &str = "/exec/programmatic";

async fn begin(api: &CodeApi, code: &str) -> Value {
    let tools = json!([{"name": "get-weather", "description": "d", "parameters": {"type": "object"}},
        {"name": "class"}]);
    let (status, answer) = api
        .post(STEP, json!({"code": code, "tools": tools, "timeout": 5000}))
        .await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    answer
}

async fn go_on(api: &CodeApi, waiting: &Value, results: Value) -> (StatusCode, Value) {
    let token = &waiting["continuation_token"];
    api.post(
        STEP,
        json!({"continuation_token": token, "tool_results": results}),
    )
    .await
}

#[test]
fn code_waits_at_its_call_and_goes_on_with_the_result() {
    block_on(async {
        let api = code_api().await;
        let code = "import asyncio\nn = 0\nn += 1\n\
                    sf, ny = await asyncio.gather(get_weather(city='SF'), get_weather(city='NY'))\n\
                    print(n, sf['t'] + ny['t'])\nn += 1\nprint(n, await class_tool())\n\
                    open('a.txt', 'w').write('a')";
        let first = begin(&api, code).await;
        assert_eq!(first["status"], "tool_call_required", "{first}");
        let calls = first["tool_calls"].as_array().unwrap();
        assert_eq!(calls.len(), 2, "{first}");
        assert!(calls.iter().all(|it| it["name"] == "get-weather"));
        let results: Vec<_> = calls
            .iter()
            .map(|it| {
                let t = if it["input"]["city"] == "SF" { 40 } else { 2 };
                json!({"call_id": it["id"], "result": {"t": t}, "is_error": false})
            })
            .collect();
        let (_, second) = go_on(&api, &first, json!(results)).await;
        assert_eq!(second["tool_calls"][0]["name"], "class", "{second}");
        let result = json!([{"call_id": second["tool_calls"][0]["id"], "result": "text", "is_error": false}]);
        let (_, end) = go_on(&api, &second, result.clone()).await;
        assert_eq!(
            (&end["status"], &end["stdout"]),
            (&json!("completed"), &json!("1 42\n2 text\n")),
            "{end}"
        );
        assert_eq!(api.content(named(&end, "a.txt")).await, "a");
        let (status, replayed) = go_on(&api, &second, result).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert!(
            replayed["error"]
                .as_str()
                .unwrap()
                .starts_with("invalid continuation_token"),
            "{replayed}"
        );
    });
}

#[test]
fn a_failed_or_missing_result_is_an_error_in_code() {
    block_on(async {
        let api = code_api().await;
        let code = "try:\n    await get_weather()\nexcept Exception as error:\n    print(error)\n\
                    await get_weather()";
        let first = begin(&api, code).await;
        let failed = json!([{"call_id": first["tool_calls"][0]["id"], "result": null, "is_error": true,
            "error_message": "no such city"}]);
        let (_, second) = go_on(&api, &first, failed).await;
        let (_, end) = go_on(&api, &second, json!([])).await;
        assert_eq!(
            (&end["status"], &end["code"]),
            (&json!("completed"), &json!(1)),
            "{end}"
        );
        assert!(end["stdout"].as_str().unwrap().contains("no such city"), "{end}");
        assert!(
            end["stderr"].as_str().unwrap().contains("sent no result"),
            "{end}"
        );
    });
}

#[test]
fn waiting_for_the_client_is_not_the_time_of_the_code() {
    block_on(async {
        let api = code_api().await;
        let tools = json!([{"name": "slow"}]);
        let (_, first) = api
            .post(
                STEP,
                json!({"code": "print(await slow())", "tools": tools, "timeout": 1000}),
            )
            .await;
        tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
        let result = json!([{"call_id": first["tool_calls"][0]["id"], "result": 5}]);
        let (_, end) = go_on(&api, &first, result).await;
        assert_eq!(end["stdout"], "5\n", "{end}");
    });
}

#[test]
fn requests_that_no_program_answers_are_refused_by_name() {
    block_on(async {
        let api = code_api().await;
        for (request, reason) in [
            (
                json!({"continuation_token": "unknown", "tool_results": []}),
                "invalid continuation_token",
            ),
            (json!({"tools": []}), "`code` is missing"),
            (
                json!({"code": "1", "tools": [{"name": "a-b"}, {"name": "a b"}]}),
                "no name of its own",
            ),
            (
                json!({"code": "x", "lang": "bash", "tools": [{"name": "a"}]}),
                "bash cannot call tools",
            ),
        ] {
            let (status, answer) = api.post(STEP, request).await;
            assert_eq!(status, StatusCode::BAD_REQUEST);
            assert!(answer["error"].as_str().unwrap().contains(reason), "{answer}");
        }
        let (_, canceled) = api
            .post("/exec/programmatic/cancel", json!({"request_id": "none"}))
            .await;
        assert_eq!(canceled["cancelled"], false);
    });
}
