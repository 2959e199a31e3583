//! Responses, conversations and results of tools against the quota of stored bytes.

use std::sync::Arc;

use cellblock_agent::provider::scripted::{ScriptedAnswer, ScriptedProvider};
use cellblock_agent::tools::ConfiguredServer;
use serde_json::{Value, json};

use crate::market::{Market, fetches, items, read, says, series, start};
use crate::support::{Server, block_on, interpreter_tool, serve_with};

/// Days of each series, so that the text of responses is short beside them.
const DAYS: i64 = 5000;

fn bytes(tool: &str) -> u64 {
    series(tool, DAYS).to_string().len() as u64
}

/// Room for the longer of the two series alone, and the text of responses.
fn limit() -> u64 {
    bytes("get_net_flow") + 100_000
}

fn flows() -> ScriptedAnswer {
    ScriptedAnswer::new().call("c2", "get_net_flow", "{}")
}

fn prices() -> ScriptedAnswer {
    ScriptedAnswer::new().call("c1", "get_price_history", "{}")
}

async fn started(answers: Vec<ScriptedAnswer>) -> (Server, Arc<ScriptedProvider>) {
    let answers = answers.into_iter();
    let turns = answers.flat_map(|answer| [answer, says("Seen.")]).collect();
    start(turns, |options| {
        options.tools.configured = vec![ConfiguredServer {
            server: Arc::new(Market { days: DAYS }),
            always: true,
        }];
        options.quotas.stored_bytes = Some(limit());
    })
    .await
}

/// A turn that ends well, whatever its tools gave.
async fn turn(server: &Server, change: &Value) -> Value {
    let mut asked = json!({"input": "What is there?", "tools": interpreter_tool()});
    for (key, value) in change.as_object().unwrap().clone() {
        asked[key] = value;
    }
    let response = server.create(asked).await.ok();
    assert_eq!(response["status"], "completed", "{response}");
    response
}

/// Checks what a model reads of a series for which there is no room beside more than so many bytes.
fn assert_refused(told: &str, tool: &str, least: u64) {
    let begin = format!(
        "The tool returned no result: the result could not be stored: it has {} bytes beside ",
        bytes(tool)
    );
    let end = format!(
        " that are kept; the quota `stored_bytes` of this key is used up: its limit is {}; try again in 60 s",
        limit()
    );
    let kept = told.strip_prefix(&begin).and_then(|rest| rest.strip_suffix(&end));
    let kept: u64 = kept.unwrap_or_else(|| panic!("{told}")).parse().unwrap();
    assert!((least..least + 100_000).contains(&kept), "{kept} beside {least}");
}

#[test]
fn a_result_beyond_the_quota_is_an_error_that_the_model_reads_and_the_turn_goes_on() {
    block_on(async {
        let (server, provider) = started(vec![fetches(), fetches()]).await;
        let price = bytes("get_price_history");
        // The second turn fetches what is kept already, which takes no more room.
        for asked in [1, 3] {
            let response = turn(&server, &json!({})).await;
            let told = read(&provider, asked);
            assert!(told[0].starts_with("get_price_history_1"), "{}", told[0]);
            assert_refused(&told[1], "get_net_flow", price);
            let calls = items(&response, "mcp_call");
            assert_eq!(
                (&calls[0]["error"], &calls[1]["output"]),
                (&Value::Null, &Value::Null)
            );
            assert_eq!(calls[1]["error"]["type"], "mcp_protocol_error");
        }
        let counted = "cellblock_quota_rejections_total{quota=\"stored_bytes\"}";
        assert!(server.metrics().await.contains(counted));
    });
}

#[test]
fn results_count_as_long_as_a_response_keeps_them_and_only_for_their_owner() {
    block_on(async {
        let answers = vec![prices(), prices(), flows(), flows(), flows()];
        let (server, provider) = started(answers).await;
        let price = bytes("get_price_history");
        let first = turn(&server, &json!({})).await["id"].clone();
        // It goes on from the first, and fetches the same: that counts once.
        let second = turn(&server, &json!({"previous_response_id": first})).await["id"].clone();
        turn(&server.of("bob"), &json!({})).await;
        let asked = provider.asked().len();
        assert!(read(&provider, asked - 1)[0].starts_with("get_net_flow_1"));

        let delete = async |id: &Value| {
            let path = format!("responses/{}", id.as_str().unwrap());
            server.send(server.request("DELETE", &path)).await.ok();
        };
        delete(&first).await;
        turn(&server, &json!({})).await;
        let asked = provider.asked().len();
        assert_refused(&read(&provider, asked - 1)[0], "get_net_flow", price);
        delete(&second).await;
        turn(&server, &json!({})).await;
        let asked = provider.asked().len();
        assert!(read(&provider, asked - 1)[0].starts_with("get_net_flow_1"));
    });
}

#[test]
fn what_a_response_does_not_keep_counts_while_it_runs_and_not_afterwards() {
    block_on(async {
        let (server, provider) = started(vec![fetches(), flows()]).await;
        turn(&server, &json!({"store": false})).await;
        assert_refused(&read(&provider, 1)[1], "get_net_flow", bytes("get_price_history"));
        turn(&server, &json!({"store": false})).await;
        assert!(read(&provider, 3)[0].starts_with("get_net_flow_1"));
    });
}

/// The status and the code of the error of a quota that is used up.
const USED_UP: (u16, &str) = (429, "rate_limit_exceeded");

#[test]
fn responses_and_conversations_that_do_not_fit_are_refused_before_they_are_written() {
    block_on(async {
        let provider = Arc::new(ScriptedProvider::new([says("Hello."), says("Hello again.")]));
        let server = serve_with(provider, |options| options.quotas.stored_bytes = Some(1)).await;
        let refused = server.create(json!({"input": "Hello?"})).await;
        assert_eq!(refused.error(), USED_UP);
        let message = refused.body["error"]["message"].as_str().unwrap();
        assert!(
            message.starts_with("the quota `stored_bytes` of this key is used up"),
            "{message}"
        );
        let refused = server.post("conversations", &json!({})).await;
        assert_eq!(refused.error(), USED_UP);
        assert_eq!(server.get("responses").await.ok()["data"], json!([]));
        // What is not stored needs no room.
        let response = server
            .create(json!({"input": "Hello?", "store": false}))
            .await
            .ok();
        assert_eq!(response["status"], "completed", "{response}");
    });
}

#[test]
fn a_response_whose_output_does_not_fit_fails_and_room_is_there_again_after_deletions() {
    block_on(async {
        let long = "word ".repeat(40_000);
        let answers = [
            says(&long),
            says("Short."),
            says("Short."),
            says(&long),
            says("Short."),
        ];
        let server = serve_with(Arc::new(ScriptedProvider::new(answers)), |options| {
            options.quotas.stored_bytes = Some(100_000);
        })
        .await;
        let failed = server.create(json!({"input": "Write a lot."})).await.ok();
        assert_eq!(failed["status"], "failed", "{}", failed["error"]);
        assert_eq!(failed["error"]["code"], "rate_limit_exceeded");
        // Its client has what the model said; the records have not.
        assert_eq!(failed["output"][0]["content"][0]["text"], long.as_str());
        let kept = server
            .get(&format!("responses/{}", failed["id"].as_str().unwrap()))
            .await
            .ok();
        assert_eq!((&kept["status"], &kept["output"]), (&json!("failed"), &json!([])));

        let conversation = json!({"items": [{"role": "user", "content": "x".repeat(30_000)}]});
        let conversation = server.post("conversations", &conversation).await.ok();
        let conversation = conversation["id"].as_str().unwrap();
        let asked = json!({"input": "Hello?"});
        let response = server.create(asked.clone()).await.ok();
        assert_eq!(response["status"], "completed", "{response}");
        let more = json!({"items": [{"role": "user", "content": "x".repeat(30_000)}]});
        let path = format!("conversations/{conversation}/items");
        assert_eq!(server.post(&path, &more).await.error(), USED_UP);
        assert_eq!(server.of("bob").post("conversations", &more).await.status, 200);

        let path = format!("conversations/{conversation}");
        server.send(server.request("DELETE", &path)).await.ok();
        server.post("conversations", &more).await.ok();
        // A conversation has what does not fit neither.
        let other = server.post("conversations", &json!({})).await.ok();
        let asked = json!({"input": "Hello?", "conversation": other["id"], "store": false});
        let response = server.create(asked.clone()).await.ok();
        assert_eq!(response["status"], "completed", "{response}");
        let failed = server.create(asked.clone()).await.ok();
        assert_eq!(
            failed["error"]["code"], "rate_limit_exceeded",
            "{}",
            failed["status"]
        );
        let path = format!("conversations/{}/items", other["id"].as_str().unwrap());
        let items = server.get(&path).await.ok();
        assert_eq!(items["data"].as_array().unwrap().len(), 2, "{items}");
    });
}
