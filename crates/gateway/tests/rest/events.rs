//! Events of a session, over HTTP.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Api, block_on};

/// The events of a session, with their cells.
async fn events(api: &Api, session: &str) -> Vec<Value> {
    let (status, listed) = api.get(&format!("{session}/events")).await;
    assert_eq!(status, StatusCode::OK, "{listed}");
    listed["data"].as_array().unwrap().clone()
}

fn kinds(events: &[Value]) -> Vec<(&str, u64)> {
    events
        .iter()
        .map(|it| (it["event"].as_str().unwrap(), it["cell"].as_u64().unwrap()))
        .collect()
}

#[test]
fn the_events_of_a_session_are_listed_in_order() {
    block_on(async {
        let api = Api::of("events").await;
        let session = api.session(&json!({"rescue": "on"})).await;
        let post = |path: &str, body: Value| {
            let path = format!("{session}/{path}");
            let api = &api;
            async move {
                let (status, answer) = api.post(&path, &body).await;
                assert!(status.is_success(), "{path}: {answer}");
                answer
            }
        };
        assert!(events(&api, &session).await.is_empty());
        api.run(&session, "x = 1").await;
        post("checkpoints", json!({"name": "before"})).await;
        api.run(&session, "x = 2").await;
        post("rollback", json!({"checkpoint": "before"})).await;
        post("try", json!({"code": "x = 3"})).await;
        post("try/discard", json!({})).await;
        api.run(&session, "import os\nos._exit(1)").await;
        let forked = post("fork", json!({})).await;
        let dropped = api.request(Method::DELETE, &format!("{session}/checkpoints/before"));
        assert_eq!(dropped.send().await.unwrap().status(), StatusCode::OK);
        post("hibernate", json!({})).await;
        api.run(&session, "x = 4").await;
        post("reset", json!({})).await;

        let happened = events(&api, &session).await;
        let expected = [
            ("checkpoint", 1),
            ("rolled_back", 2),
            ("tried", 3),
            ("try_discarded", 3),
            ("rescued", 4),
            ("forked", 4),
            ("checkpoint_dropped", 4),
            ("hibernated", 4),
            ("resumed", 4),
            ("reset", 5),
        ];
        assert_eq!(kinds(&happened), expected);
        assert_eq!(
            (&happened[0]["checkpoint"], &happened[0]["name"]),
            (&json!("c1"), &json!("before"))
        );
        assert_eq!(happened[5]["sessions"], forked["ids"]);
        assert!(happened.is_sorted_by_key(|it| it["at_unix_ms"].as_u64()));

        let fork = format!("/v1/sessions/{}", forked["ids"][0].as_str().unwrap());
        let of_fork = events(&api, &fork).await;
        assert_eq!(kinds(&of_fork), [("forked_from", 4)]);
        assert_eq!(of_fork[0]["session"], forked["parent"]);
        api.end(&fork).await;
        api.end(&session).await;
    });
}
