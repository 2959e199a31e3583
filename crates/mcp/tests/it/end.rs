//! The end of a server while calls are at work.

use std::time::Duration;

use rmcp::model::CallToolResponse;
use serde_json::json;

use crate::support::{Client, answer, block_on, call, connect, done, newest, server, text, until};

#[test]
fn a_call_has_its_time_and_then_is_interrupted_and_says_why() {
    block_on(async {
        for (code, ending, outcome) in [
            (
                "print('on', flush=True)\nimport time; time.sleep(1)",
                Duration::from_mins(1),
                "completed",
            ),
            (
                "print('on', flush=True)\nimport time; time.sleep(60)",
                Duration::ZERO,
                "interrupted",
            ),
        ] {
            let server = server(|_| {}).await;
            let client = Client::default();
            let connected = connect(&server, client.clone(), newest()).await;
            let peer = connected.peer().clone();
            let running = tokio::spawn(async move {
                peer.call_tool_once(call("run_python", json!({"code": code})))
                    .await
            });
            until("the code runs", async || client.heard().contains("on")).await;
            server.drain(tokio::time::sleep(ending)).await;
            let CallToolResponse::Complete(result) = running.await.unwrap().unwrap() else {
                panic!("not an answer")
            };
            let told = text(&result);
            assert_eq!(result.structured_content.unwrap()["outcome"], outcome, "{told}");
            assert_eq!(
                told.contains("[note] the server is stopping"),
                outcome == "interrupted"
            );

            // What comes later is told so, and begins nothing.
            let late = answer(&connected, "run_python", json!({"code": "1"})).await;
            assert_eq!(late.is_error, Some(true));
            assert!(text(&late).contains("[note] the server is stopping"), "{late:?}");
            let sessions = done(&connected, "list_sessions", json!({})).await;
            assert_eq!(sessions["sessions"], json!([]));
        }
    });
}
