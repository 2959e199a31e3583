//! Whose things are whose, and how many somebody may have.

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::support::{Api, block_on};

#[test]
fn objects_of_other_owners_are_not_found() {
    block_on(async {
        let (one, two) = (Api::of("one").await, Api::of("two").await);
        let session = one.session(&json!({})).await;
        one.run(&session, "open('a.txt', 'w').write('mine')").await;
        for (method, path) in [
            (Method::GET, ""),
            (Method::DELETE, ""),
            (Method::GET, "/cells"),
            (Method::GET, "/cells/1"),
            (Method::POST, "/cells"),
            (Method::POST, "/interrupt"),
            (Method::POST, "/reset"),
            (Method::PUT, "/inputs/x"),
            (Method::GET, "/files"),
            (Method::GET, "/files/workspace/a.txt"),
            (Method::PUT, "/files/workspace/a.txt"),
            (Method::DELETE, "/files/workspace/a.txt"),
            (Method::GET, "/datasets"),
            (Method::POST, "/datasets?name=a.csv"),
            (Method::GET, "/tools"),
            (Method::POST, "/tools/run_python"),
            (Method::GET, "/aliases"),
            (Method::POST, "/aliases"),
            (Method::GET, "/variables"),
            (Method::GET, "/usage"),
            (Method::POST, "/fork"),
            (Method::POST, "/hibernate"),
            (Method::GET, "/events"),
            (Method::GET, "/checkpoints"),
            (Method::POST, "/checkpoints"),
            (Method::DELETE, "/checkpoints/c1"),
        ] {
            let request = two.request(method.clone(), &format!("{session}{path}"));
            let request = request.header("content-type", "application/json").body("{}");
            let response = request.send().await.unwrap();
            assert_eq!(response.status(), StatusCode::NOT_FOUND, "{method} {path}");
            let error: serde_json::Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
            assert_eq!(error["error"]["code"], "session_not_found", "{method} {path}");
        }
        let (_, all) = two.get("/v1/sessions").await;
        assert_eq!(all["data"], json!([]));
        assert_eq!(one.get(&session).await.0, StatusCode::OK);
        one.end(&session).await;
    });
}

#[test]
fn an_owner_has_so_many_sessions_and_no_more() {
    block_on(async {
        let api = Api::of("many").await;
        let mut sessions = Vec::new();
        for _ in 0..4 {
            sessions.push(api.session(&json!({})).await);
        }
        let response = api.start("/v1/sessions", &json!({})).await;
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(response.headers()["retry-after"], "1");
        api.end(&sessions.pop().unwrap()).await;
        sessions.push(api.session(&json!({})).await);
        // One that could not be set up takes no place.
        api.end(&sessions.pop().unwrap()).await;
        let (status, _) = api
            .post("/v1/sessions", &json!({"inputs": {"1x": {"value": 1}}}))
            .await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        sessions.push(api.session(&json!({})).await);
        for session in sessions {
            api.end(&session).await;
        }
    });
}
