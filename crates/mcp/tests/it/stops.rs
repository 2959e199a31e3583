//! Reports while a call runs, and ways to stop it.

use rmcp::model::{ClientRequest, Request};
use rmcp::service::PeerRequestOptions;
use serde_json::json;

use crate::support::{Client, block_on, call, connect, done, newest, revisions, run, server, session, until};

#[test]
fn output_is_sent_before_the_result() {
    block_on(async {
        let server = server(|_| {}).await;
        for revision in revisions() {
            let client = Client::default();
            let connected = connect(&server, client.clone(), revision).await;
            let peer = connected.peer().clone();
            let code = json!({"code": "import time\nprint('early', flush=True)\n\
                                       while not __import__('os').path.exists('go'): time.sleep(0.01)\n\
                                       print('late')"});
            let session = session(&connected).await;
            let mut code = code;
            code["session_id"] = session.clone().into();
            let running = tokio::spawn(async move { peer.call_tool_once(call("run_python", code)).await });
            until("the first line is told", async || {
                client.heard().contains("early")
            })
            .await;
            assert!(!running.is_finished());
            // The cell goes on once the file is there; files can be written while it runs only by
            // itself, so it is stopped.
            done(&connected, "interrupt_session", json!({"session_id": session})).await;
            running.await.unwrap().unwrap();
            let told = client.told.lock();
            assert!(told.is_sorted_by(|a, b| a.progress < b.progress), "{told:?}");
        }
    });
}

#[test]
fn a_canceled_call_stops_its_code_and_the_session_continues() {
    block_on(async {
        let server = server(|_| {}).await;
        for revision in revisions() {
            let client = Client::default();
            let connected = connect(&server, client.clone(), revision).await;
            let session = session(&connected).await;
            run(&connected, Some(&session), "kept = 42").await;
            let endless = call(
                "run_python",
                json!({"code": "print('on', flush=True)\nwhile True: pass", "session_id": session}),
            );
            let handle = connected
                .send_cancellable_request(
                    ClientRequest::CallToolRequest(Request::new(endless)),
                    PeerRequestOptions::no_options(),
                )
                .await
                .unwrap();
            until("the code runs", async || client.heard().contains("on")).await;
            handle.cancel(Some("no longer wanted".into())).await.unwrap();
            assert_eq!(
                run(&connected, Some(&session), "kept").await["outputs"][0]["value"],
                42
            );
        }
    });
}

#[test]
fn a_call_that_waits_for_another_is_cancelled_without_stopping_that() {
    block_on(async {
        let server = server(|_| {}).await;
        let client = Client::default();
        let connected = connect(&server, client.clone(), newest()).await;
        let session = session(&connected).await;
        let slow = json!({"code": "print('on', flush=True)\nimport time; time.sleep(3)\n'done'",
            "session_id": session});
        let peer = connected.peer().clone();
        let slow = tokio::spawn(async move { peer.call_tool_once(call("run_python", slow)).await });
        until("the first code runs", async || client.heard().contains("on")).await;
        let waits = call("run_python", json!({"code": "1", "session_id": session}));
        let handle = connected
            .send_cancellable_request(
                ClientRequest::CallToolRequest(Request::new(waits)),
                PeerRequestOptions::no_options(),
            )
            .await
            .unwrap();
        handle.cancel(None).await.unwrap();
        let rmcp::model::CallToolResponse::Complete(slow) = slow.await.unwrap().unwrap() else {
            panic!("not an answer")
        };
        assert_eq!(slow.structured_content.unwrap()["outputs"][0]["value"], "done");
    });
}
