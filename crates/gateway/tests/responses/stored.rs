//! Results of tools against the quota of stored bytes.

use cellblock_agent::provider::scripted::{Scripted, ScriptedAnswer};
use serde_json::{Value, json};

use crate::market::{DAYS, fetches, items, read, says, series, start};
use crate::support::{Server, block_on, interpreter_tool};

fn bytes(tool: &str) -> u64 {
    series(tool, DAYS).to_string().len() as u64
}

/// Room for the longer of the two series alone.
fn limit() -> u64 {
    bytes("get_net_flow") + 100
}

fn flows() -> ScriptedAnswer {
    ScriptedAnswer::new().call("c2", "get_net_flow", "{}")
}

fn prices() -> ScriptedAnswer {
    ScriptedAnswer::new().call("c1", "get_price_history", "{}")
}

async fn started(answers: Vec<ScriptedAnswer>) -> (Server, std::sync::Arc<Scripted>) {
    let answers = answers.into_iter();
    let turns = answers.flat_map(|answer| [answer, says("Seen.")]).collect();
    start(turns, |options| {
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

/// What a model reads of a series for which there is no room beside so many bytes.
fn refused(tool: &str, kept: u64) -> String {
    format!(
        "The tool returned no result: the result could not be stored: it has {} bytes beside {kept} that are kept; the quota `stored_bytes` of this key is \
         used up: its limit is {}; try again in 60 s",
        bytes(tool),
        limit()
    )
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
            assert_eq!(told[1], refused("get_net_flow", price));
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
        assert_eq!(read(&provider, asked - 1)[0], refused("get_net_flow", price));
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
        assert_eq!(
            read(&provider, 1)[1],
            refused("get_net_flow", bytes("get_price_history"))
        );
        turn(&server, &json!({"store": false})).await;
        assert!(read(&provider, 3)[0].starts_with("get_net_flow_1"));
    });
}
