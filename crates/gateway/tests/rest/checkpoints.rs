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

        let (_, cell) = api.get(&format!("{session}/cells/2")).await;
        assert_eq!((&cell["parent"], &cell["discarded"]), (&json!(1), &json!(true)));

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

#[test]
fn a_try_counts_once_it_is_kept() {
    block_on(async {
        let api = Api::of("tries").await;
        let session = api.session(&json!({})).await;
        let (run, keep) = (format!("{session}/try"), format!("{session}/try/keep"));
        let discard = format!("{session}/try/discard");
        api.run(&session, "x = 1").await;
        let code = json!({"code": "x = 2\nopen('/workspace/a', 'w').write('two')\nx"});
        let (status, tried) = api.post(&run, &code).await;
        assert_eq!(
            (status, &tried["undecided"]),
            (StatusCode::OK, &json!(true)),
            "{tried}"
        );
        assert_eq!(tried["outputs"][0]["value"], 2);
        assert_eq!(
            tried["changes"],
            json!({
                "variables": [{"name": "x", "change": "changed"}],
                "files": [{"path": "/workspace/a", "change": "created"}],
            })
        );
        let (status, refused) = api.post(&format!("{session}/cells"), &json!({"code": "x"})).await;
        assert_eq!(
            (status, &refused["error"]["code"]),
            (StatusCode::CONFLICT, &json!("try_undecided"))
        );
        let (status, decided) = api.post(&discard, &json!({})).await;
        assert_eq!(
            (status, decided),
            (StatusCode::OK, json!({"cell": 2, "kept": false}))
        );
        assert_eq!(api.run(&session, "x").await["outputs"][0]["value"], 1);
        let (status, none) = api.post(&keep, &json!({})).await;
        assert_eq!(
            (status, &none["error"]["code"]),
            (StatusCode::NOT_FOUND, &json!("try_not_found"))
        );
        api.post(&run, &code).await;
        let (status, decided) = api.post(&keep, &json!({})).await;
        assert_eq!(
            (status, decided),
            (StatusCode::OK, json!({"cell": 4, "kept": true}))
        );
        assert_eq!(api.run(&session, "x").await["outputs"][0]["value"], 2);
        let (_, cells) = api.get(&format!("{session}/cells")).await;
        let line: Vec<_> = cells["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| {
                (
                    it["cell"].as_u64(),
                    it["parent"].as_u64(),
                    it["discarded"] == true,
                )
            })
            .collect();
        let expected = [
            (Some(1), None, false),
            (Some(2), Some(1), true),
            (Some(3), Some(1), false),
            (Some(4), Some(3), false),
            (Some(5), Some(4), false),
        ];
        assert_eq!(line, expected, "a discarded try is on no branch");
        api.end(&session).await;
    });
}
