//! Processes beside cells.

use reqwest::StatusCode;
use serde_json::json;

use crate::support::{Api, block_on};

#[test]
fn a_process_is_started_fed_read_signaled_and_waited_for() {
    block_on(async {
        let api = Api::of("processes").await;
        let session = api.session(&json!({})).await;
        let all = format!("{session}/processes");
        let order = json!({
            "command": ["sh", "-c", "echo \"$GREETING\"; pwd; cat; sleep 1000"],
            "env": {"GREETING": "hello"}, "directory": "/tmp", "stdin": true,
        });
        let (status, started) = api.post(&all, &order).await;
        assert_eq!(status, StatusCode::CREATED, "{started}");
        assert_eq!(
            (&started["object"], &started["id"], &started["state"]),
            (&json!("session.process"), &json!("p1"), &json!("running"))
        );
        let one = format!("{all}/p1");
        let (status, _) = api
            .post(
                &format!("{one}/input"),
                &json!({"data": "YWJj", "encoding": "base64", "close": true}),
            )
            .await;
        assert_eq!(status, StatusCode::OK);
        // A cell runs meanwhile.
        assert_eq!(api.run(&session, "40 + 2").await["outputs"][0]["value"], 42);
        let mut text = String::new();
        let mut offset = 0;
        while text.len() < 14 {
            let path = format!("{one}/output?offset={offset}&max_bytes=5&wait=60");
            let (status, part) = api.get(&path).await;
            assert_eq!((status, &part["lost"]), (StatusCode::OK, &json!(0)), "{part}");
            text += part["text"].as_str().unwrap();
            offset = part["next_offset"].as_u64().unwrap();
        }
        assert_eq!(text, "hello\n/tmp\nabc");
        let (status, running) = api.post(&format!("{one}/wait"), &json!({"timeout": 0})).await;
        assert_eq!((status, &running["state"]), (StatusCode::OK, &json!("running")));
        let (status, _) = api
            .post(&format!("{one}/signal"), &json!({"signal": "SIGKILL"}))
            .await;
        assert_eq!(status, StatusCode::OK);
        let (_, ended) = api.post(&format!("{one}/wait"), &json!({})).await;
        assert_eq!(
            (&ended["state"], &ended["signal"]),
            (&json!("killed"), &json!("SIGKILL"))
        );
        let (_, listed) = api.get(&all).await;
        assert_eq!(listed["data"], json!([ended]));
        api.end(&session).await;
    });
}

#[test]
fn mistakes_about_processes_have_a_status_and_a_code() {
    block_on(async {
        let api = Api::of("processes' mistakes").await;
        let session = api.session(&json!({})).await;
        let all = format!("{session}/processes");
        for (path, body, status, code) in [
            (all.clone(), json!({}), 400, "invalid_value"),
            (
                all.clone(),
                json!({"command": ["true"], "env": {"": "x"}}),
                400,
                "invalid_value",
            ),
            (format!("{all}/p1/wait"), json!({}), 404, "process_not_found"),
            (
                format!("{all}/p1/wait"),
                json!({"timeout": -1}),
                400,
                "invalid_value",
            ),
            (
                format!("{all}/p1/signal"),
                json!({"signal": "SIGNONE"}),
                400,
                "invalid_value",
            ),
        ] {
            let (answered, told) = api.post(&path, &body).await;
            assert_eq!(
                (answered.as_u16(), &told["error"]["code"]),
                (status, &json!(code)),
                "{path} {body}: {told}"
            );
        }
        // Sessions of others are not found.
        let other = Api::of("processes' others").await;
        let (status, _) = other.post(&all, &json!({"command": ["true"]})).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        let (status, _) = other.get(&all).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        api.end(&session).await;
        let derivation = api.session(&json!({"toolset": "derivation"})).await;
        let (status, told) = api
            .post(&format!("{derivation}/processes"), &json!({"command": ["true"]}))
            .await;
        assert_eq!(
            (status, &told["error"]["code"]),
            (StatusCode::BAD_REQUEST, &json!("wrong_toolset"))
        );
        api.end(&derivation).await;
    });
}
