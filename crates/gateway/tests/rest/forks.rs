//! Forks of a session over HTTP.

use reqwest::StatusCode;
use serde_json::json;

use crate::support::{Api, block_on, until};

#[test]
fn a_session_is_forked_into_sessions_of_the_same_owner() {
    block_on(async {
        let api = Api::of("forks").await;
        let session = api.session(&json!({})).await;
        api.run(&session, "x = [1]\nopen('/workspace/a', 'w').write('one')")
            .await;
        let (status, forked) = api.post(&format!("{session}/fork"), &json!({"count": 2})).await;
        assert_eq!(status, StatusCode::CREATED, "{forked}");
        let ids: Vec<_> = forked["ids"]
            .as_array()
            .unwrap()
            .iter()
            .map(|id| id.as_str().unwrap())
            .collect();
        assert_eq!(ids.len(), 2);
        assert!(session.ends_with(forked["parent"].as_str().unwrap()));
        let (_, listed) = api.get("/v1/sessions").await;
        assert_eq!(listed["data"].as_array().unwrap().len(), 3, "{listed}");
        for (number, id) in ids.iter().enumerate() {
            let fork = format!("/v1/sessions/{id}");
            let code = format!("x.append({number}); f\"{{x}} {{open('/workspace/a').read()}}\"");
            let shown = api.run(&fork, &code).await;
            assert_eq!(
                shown["outputs"][0]["value"],
                format!("[1, {number}] one"),
                "{shown}"
            );
        }
        let shown = api.run(&session, "str(x)").await;
        assert_eq!(shown["outputs"][0]["value"], "[1]");
        // One more is allowed, and two are wanted: none is made.
        let (status, refused) = api.post(&format!("{session}/fork"), &json!({"count": 2})).await;
        assert_eq!(
            (status, &refused["error"]["code"]),
            (StatusCode::TOO_MANY_REQUESTS, &json!("too_many_sessions"))
        );
        let (_, listed) = api.get("/v1/sessions").await;
        assert_eq!(listed["data"].as_array().unwrap().len(), 3, "{listed}");
        for id in ids {
            api.end(&format!("/v1/sessions/{id}")).await;
        }
        for count in [0, 17] {
            let (status, refused) = api
                .post(&format!("{session}/fork"), &json!({"count": count}))
                .await;
            assert_eq!(
                (status, &refused["error"]["code"]),
                (StatusCode::BAD_REQUEST, &json!("fork_count"))
            );
        }
        let code = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()";
        api.run(&session, code).await;
        let (status, refused) = api.post(&format!("{session}/fork"), &json!({})).await;
        assert_eq!(
            (status, &refused["error"]["code"]),
            (StatusCode::CONFLICT, &json!("fork_refused"))
        );
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("threads that Python started"), "{message}");
        let (status, lost) = api.post(&format!("{session}/hibernate"), &json!({})).await;
        assert_eq!(
            (status, &lost["lost_variables"]),
            (StatusCode::OK, &json!(true)),
            "{lost}"
        );
        let shown = api.run(&session, "'x' in globals()").await;
        assert_eq!(shown["outputs"][0]["value"], false, "{shown}");
        assert!(shown.to_string().contains("hibernated"), "{shown}");
        let (_, listed) = api.get(&format!("{session}/files")).await;
        assert!(listed.to_string().contains("/workspace/a"), "{listed}");
        api.end(&session).await;
    });
}

#[test]
fn an_idle_session_is_hibernated_if_its_owner_asked_for_that() {
    block_on(async {
        let api = Api::of("hibernation").await;
        let (status, refused) = api.post("/v1/sessions", &json!({"on_idle": "sleep"})).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{refused}");
        let usual = api.session(&json!({})).await;
        let (_, shown) = api.get(&usual).await;
        assert_eq!(
            (&shown["on_idle"], &shown["status"]),
            (&json!("end"), &json!("idle"))
        );
        api.end(&usual).await;
        let options = json!({"idle_timeout": 1, "on_idle": "hibernate"});
        let session = api.session(&options).await;
        api.run(&session, "x = 1\nopen('/workspace/a', 'w').write('kept')")
            .await;
        let (_, shown) = api.get(&session).await;
        let lifetime = shown["expires_at"].as_u64().unwrap() - shown["last_used_at"].as_u64().unwrap();
        assert_eq!((lifetime, &shown["on_idle"]), (86_401, &json!("hibernate")));
        until("the session is hibernated", || async {
            let (_, shown) = api.get(&session).await;
            shown["status"] == "hibernated"
        })
        .await;
        let (_, listed) = api.get("/v1/sessions").await;
        assert_eq!(listed["data"][0]["status"], "hibernated", "{listed}");
        let shown = api.run(&session, "open('/workspace/a').read()").await;
        assert_eq!(shown["outputs"][0]["value"], "kept", "{shown}");
        assert!(
            shown.to_string().contains("the session was hibernated"),
            "{shown}"
        );
        api.end(&session).await;
    });
}
