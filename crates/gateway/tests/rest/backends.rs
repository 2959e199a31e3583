//! The wall that a caller demands around its code. Sandboxes of the shared gateway are processes.

use reqwest::StatusCode;
use serde_json::json;

use crate::support::{Api, block_on};

#[test]
fn a_key_is_rejected_where_the_wall_is_weaker_than_its_minimum() {
    block_on(async {
        let api = Api::of("behind gVisor").await;
        for path in ["/v1/sessions", "/v1/containers"] {
            let (status, refused) = api.get(path).await;
            assert_eq!(status, StatusCode::FORBIDDEN, "{refused}");
            assert_eq!(refused["error"]["code"], "backend_too_weak", "{refused}");
            let message = refused["error"]["message"].as_str().unwrap();
            assert!(
                message.contains("backend `process`, which is weaker than the minimum `gvisor`"),
                "{message}"
            );
        }
    });
}

#[test]
fn a_session_is_rejected_where_the_wall_is_weaker_than_its_minimum() {
    block_on(async {
        let api = Api::of("minimum").await;
        for (minimum, expected) in [
            ("process", StatusCode::CREATED),
            ("gvisor", StatusCode::BAD_REQUEST),
            ("firewall", StatusCode::BAD_REQUEST),
        ] {
            let (status, answer) = api
                .post("/v1/sessions", &json!({"minimum_backend": minimum}))
                .await;
            assert_eq!(status, expected, "{answer}");
        }
    });
}
