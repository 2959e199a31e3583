//! Checkpoints of a session over HTTP.

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::support::{Api, block_on};

#[test]
fn a_session_is_rolled_back_to_a_checkpoint() {
    block_on(async {
        let api = Api::of("checkpoints").await;
        let session = api.session(&json!({})).await;
        let checkpoints = format!("{session}/checkpoints");
        let rollback = format!("{session}/rollback");
        api.run(&session, "x = 1\nopen('/workspace/a', 'w').write('one')")
            .await;
        let (status, kept) = api.post(&checkpoints, &json!({"name": "before"})).await;
        assert_eq!(
            (status, &kept["id"]),
            (StatusCode::CREATED, &json!("c1")),
            "{kept}"
        );
        assert_eq!(kept["evicted"], json!(null));
        let (status, taken) = api.post(&checkpoints, &json!({"name": "before"})).await;
        assert_eq!(
            (status, &taken["error"]["code"]),
            (StatusCode::BAD_REQUEST, &json!("checkpoint_exists"))
        );
        api.run(&session, "x = 2\nopen('/workspace/a', 'w').write('two')")
            .await;
        let (status, back) = api.post(&rollback, &json!({"checkpoint": "before"})).await;
        assert_eq!(
            (status, &back["checkpoint"]["id"]),
            (StatusCode::OK, &json!("c1")),
            "{back}"
        );
        assert_eq!(back["cell"], 2);
        let shown = api.run(&session, "f\"{x} {open('/workspace/a').read()}\"").await;
        assert_eq!(shown["outputs"][0]["value"], "1 one");
        assert_eq!(shown["cell"], 3);

        let code = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()";
        api.run(&session, code).await;
        let (status, refused) = api.post(&checkpoints, &json!({})).await;
        assert_eq!(
            (status, &refused["error"]["code"]),
            (StatusCode::CONFLICT, &json!("checkpoint_refused"))
        );
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("threads that Python started"), "{message}");

        let (_, list) = api.get(&checkpoints).await;
        assert_eq!(list["data"].as_array().unwrap().len(), 1);
        let dropped = api.request(Method::DELETE, &format!("{checkpoints}/before"));
        assert_eq!(dropped.send().await.unwrap().status(), StatusCode::OK);
        let (status, missing) = api.post(&rollback, &json!({"checkpoint": "before"})).await;
        assert_eq!(
            (status, &missing["error"]["code"]),
            (StatusCode::NOT_FOUND, &json!("checkpoint_not_found"))
        );
        api.end(&session).await;
    });
}
