//! Invalid requests are reported with the field and a stable word.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Api, block_on};

#[test]
fn invalid_options_create_no_session() {
    block_on(async {
        let api = Api::of("wrong").await;
        for (body, param, said) in [
            (json!({"toolset": "spreadsheet"}), json!("toolset"), "notebook"),
            (json!({"tools": []}), Value::Null, "unknown field `tools`"),
            (
                json!({"limits": {"memory": 1}}),
                json!("limits.memory"),
                "no such limit",
            ),
            (
                json!({"limits": {"memory_bytes": 1_u64 << 40}}),
                json!("limits.memory_bytes"),
                "at most",
            ),
            (json!({"idle_timeout": 0}), json!("idle_timeout"), "1 to 86400"),
            (
                json!({"prelude": ["pandas"]}),
                json!("prelude"),
                "there is no prelude",
            ),
            (
                json!({"toolset": "derivation", "guard": "strict"}),
                json!("toolset"),
                "leave them out",
            ),
            (json!({"inputs": {"x": {}}}), json!("inputs.x"), "give one of"),
            (
                json!({"inputs": {"x": {"data": "*", "format": "csv"}}}),
                json!("inputs.x.data"),
                "base64",
            ),
            (
                json!({"inputs": {"a b": {"value": 1}}}),
                Value::Null,
                "Python identifier",
            ),
        ] {
            let (status, answer) = api.post("/v1/sessions", &body).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{body}: {answer}");
            let error = &answer["error"];
            assert_eq!(
                (&error["param"], &error["type"]),
                (&param, &json!("invalid_request_error")),
                "{body}: {answer}"
            );
            assert!(
                error["message"].as_str().unwrap().contains(said),
                "{body}: {answer}"
            );
        }
        let (_, all) = api.get("/v1/sessions").await;
        assert_eq!(all["data"], json!([]));
    });
}

#[test]
fn invalid_requests_run_no_cell() {
    block_on(async {
        let api = Api::of("wrong cells").await;
        let session = api.session(&json!({})).await;
        let cells = format!("{session}/cells");
        for (body, code, param) in [
            (json!({}), "missing_required_parameter", json!("code")),
            (json!({"code": 1}), "invalid_value", Value::Null),
            (
                json!({"code": "1", "timeout": 0}),
                "invalid_value",
                json!("timeout"),
            ),
            (
                json!({"code": "1", "timeout": 301}),
                "invalid_value",
                json!("timeout"),
            ),
            (json!({"code": "1", "Stream": true}), "invalid_value", Value::Null),
            (json!([]), "invalid_value", Value::Null),
        ] {
            let (status, answer) = api.post(&cells, &body).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{body}: {answer}");
            assert_eq!(
                (&answer["error"]["code"], &answer["error"]["param"]),
                (&json!(code), &param),
                "{body}: {answer}"
            );
        }
        let send = async |media_type: &str, body: String| {
            let request = api
                .request(Method::POST, &cells)
                .header("content-type", media_type);
            let response = request.body(body).send().await.unwrap();
            let status = response.status();
            let answer: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap_or_default();
            (status, answer["error"]["code"].clone())
        };
        assert_eq!(
            send("application/json", "{".to_owned()).await,
            (StatusCode::BAD_REQUEST, json!("invalid_json"))
        );
        // What a page of another site could send without being asked.
        assert_eq!(
            send("text/plain", json!({"code": "1"}).to_string()).await,
            (
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                json!("unsupported_media_type")
            )
        );
        let large = json!({"code": "#".repeat(3 << 20)}).to_string();
        assert_eq!(
            send("application/json", large).await.0,
            StatusCode::PAYLOAD_TOO_LARGE
        );

        for path in ["/cells/1", "/cells/x"] {
            let (status, answer) = api.get(&format!("{session}{path}")).await;
            assert_eq!(
                (status, &answer["error"]["code"]),
                (StatusCode::NOT_FOUND, &json!("cell_not_found"))
            );
        }
        for path in [
            "/files/etc/passwd",
            "/files/workspace/../etc/passwd",
            "/files/workspace",
        ] {
            let (status, answer) = api.get(&format!("{session}{path}").replace("..", "%2E%2E")).await;
            assert!(status.is_client_error(), "{path}: {answer}");
        }
        let (status, answer) = api
            .put(&format!("{session}/inputs/x"), "text/html", b"x".to_vec())
            .await;
        assert_eq!(
            (status, &answer["error"]["param"]),
            (StatusCode::BAD_REQUEST, &json!("format"))
        );
        let (status, answer) = api
            .post(&format!("{session}/aliases"), &json!({"tool": "x", "value": 1}))
            .await;
        assert_eq!(
            (status, &answer["error"]["code"]),
            (StatusCode::BAD_REQUEST, &json!("wrong_toolset"))
        );
        let (_, described) = api.get(&session).await;
        assert_eq!(described["cells"], 0, "nothing was run");
        api.end(&session).await;
    });
}
