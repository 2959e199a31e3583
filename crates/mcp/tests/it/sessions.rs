//! Sessions by their handles: who has them, how many, and for how long.

use std::time::Duration;

use cellblock_interpreter::egress::EgressPolicy;
use cellblock_interpreter::limits::NetworkPolicy;
use serde_json::json;

use crate::support::{
    Client, block_on, connect, done, newest, ordinary, refused, run, server, session, until,
};

#[test]
fn a_session_is_made_listed_reset_and_closed() {
    block_on(async {
        let client = ordinary().await;
        let session = session(&client).await;
        run(&client, Some(&session), "x = 1").await;
        let listed = done(&client, "list_sessions", json!({})).await;
        assert_eq!(listed["sessions"][0]["session_id"], session);
        assert_eq!(listed["sessions"][0]["cells"], 1);
        assert_eq!(listed["sessions"][0]["busy"], false);
        done(&client, "reset_session", json!({"session_id": session})).await;
        let there = run(&client, Some(&session), "'x' in globals()").await;
        assert_eq!(there["outputs"][0]["value"], false);
        done(&client, "close_session", json!({"session_id": session})).await;
        assert_eq!(
            done(&client, "list_sessions", json!({})).await["sessions"],
            json!([])
        );
        let told = refused(&client, "run_python", json!({"code": "1", "session_id": session})).await;
        assert!(
            told.contains(
                "it has expired, was closed, made room for another one, or never existed. \
                 Leave `session_id` out"
            ),
            "{told}"
        );
    });
}

#[test]
fn sessions_have_the_network_of_the_server() {
    block_on(async {
        let code = "import socket\ntry:\n    socket.create_server(('127.0.0.1', 0)).close()\n    made = \
                    True\nexcept PermissionError:\n    made = False\nmade";
        for network in NetworkPolicy::ALL {
            let egress = EgressPolicy::from_rules(["allowed.invalid"]).unwrap();
            let server = server(|options| {
                options.network = network;
                options.egress = Some(egress);
            });
            let server = server.await;
            let client = connect(&server, Client::default(), newest()).await;
            let session = session(&client).await;
            let ran = run(&client, Some(&session), code).await;
            assert_eq!(ran["outputs"][0]["value"], !network.is_none(), "{network}");
        }
    });
}

#[test]
fn beyond_the_cap_the_session_that_was_idle_for_the_longest_time_makes_room() {
    block_on(async {
        let server = server(|options| options.max_sessions_per_key = 3).await;
        let client = connect(&server, Client::default(), newest()).await;
        let first = session(&client).await;
        let second = session(&client).await;
        let third = session(&client).await;
        run(&client, Some(&first), "kept = 42").await;
        let fourth = session(&client).await;
        let told = refused(&client, "run_python", json!({"code": "1", "session_id": second})).await;
        assert!(told.contains("made room for another one"), "{told}");
        for other in [&first, &third, &fourth] {
            assert!(!told.contains(other.as_str()), "{told}");
        }
        let kept = run(&client, Some(&first), "kept").await;
        assert_eq!(kept["outputs"][0]["value"], 42);
    });
}

#[test]
fn sessions_in_which_calls_are_at_work_make_no_room_and_are_not_named() {
    block_on(async {
        let server = server(|options| options.max_sessions_per_key = 1).await;
        let client = Client::default();
        let connected = connect(&server, client.clone(), newest()).await;
        let session = session(&connected).await;
        let peer = connected.peer().clone();
        let endless = json!({"code": "print('on', flush=True)\nwhile True: pass", "session_id": session});
        let running = tokio::spawn(async move {
            peer.call_tool_once(crate::support::call("run_python", endless))
                .await
        });
        until("the code runs", async || client.heard().contains("on")).await;
        let told = refused(&connected, "create_session", json!({})).await;
        assert_eq!(
            told,
            "there are 1 sessions, the limit is 1, and calls are at work in all of them: try again in a while"
        );
        done(&connected, "interrupt_session", json!({"session_id": session})).await;
        running.await.unwrap().unwrap();
    });
}

#[test]
fn an_idle_session_expires_and_a_busy_one_does_not() {
    block_on(async {
        let server = server(|options| options.idle_timeout = Duration::from_millis(500)).await;
        let client = connect(&server, Client::default(), newest()).await;
        let busy = run(&client, None, "import time; time.sleep(2); 'awake'").await;
        assert_eq!(busy["outputs"][0]["value"], "awake");
        until("the session expires", async || {
            done(&client, "list_sessions", json!({})).await["sessions"] == json!([])
        })
        .await;
    });
}

#[test]
fn closing_the_server_ends_every_session() {
    block_on(async {
        let server = server(|_| {}).await;
        let client = connect(&server, Client::default(), newest()).await;
        let session = session(&client).await;
        let peer = client.peer().clone();
        let running = tokio::spawn({
            let code = json!({"code": "while True: pass", "session_id": session});
            async move {
                peer.call_tool_once(crate::support::call("run_python", code))
                    .await
            }
        });
        until("the cell runs", async || {
            done(&client, "list_sessions", json!({})).await["sessions"][0]["busy"] == true
        })
        .await;
        server.close().await;
        assert_eq!(
            done(&client, "list_sessions", json!({})).await["sessions"],
            json!([])
        );
        running.await.unwrap().unwrap();
    });
}
